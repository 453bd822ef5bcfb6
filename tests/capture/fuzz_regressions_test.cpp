// Programs that the fuzzer of tests/fuzz has found to differ under compile(), as small as they get.
#include "fuzz_regressions.h"

namespace sinter {
namespace {

TEST(FuzzRegressions, ContiguousIsNewMemoryInEveryCall) {
  auto f = compile([](const Tensor& x) { return x.t().contiguous(); });
  Tensor x = ramp({2, 3});
  Tensor first = f(x), second = f(x * 2);
  EXPECT_FALSE(first.is_alias_of(second));
  expect_same(first, x.t().contiguous());
  expect_same(second, (x * 2).t().contiguous());
}

TEST(FuzzRegressions, ContiguousBeforeABranch) {
  auto f = [](const Tensor& x) {
    Tensor y = x.t().contiguous();
    if (x.sum().item<float>() > 0) x.add_(1);
    return y;
  };
  auto compiled = compile(f);
  for (double sign : {1.0, -1.0, 1.0}) {
    Tensor x = ramp({2, 4}) * sign;
    expect_same(compiled(x.clone()), f(x.clone()));
  }
}

TEST(FuzzRegressions, AFailureOfASegmentIsTheOnlyOne) {
  auto f = compile([](const Tensor& x, const Tensor& index) {
    x.add_(1);
    return index_select(x, 0, index);
  });
  EXPECT_THROW(f(ramp({3}), tensor({7})), Error);
}

TEST(FuzzRegressions, TheEagerBackendViewsWhatIsNotRowMajor) {
  auto f = compile([](const Tensor& x) { return x.reshape({-1}) + 1; }, {.backend = "eager"});
  expect_same(f(ramp({2, 3}).t()), ramp({2, 3}).t().reshape({-1}) + 1);
}

TEST(FuzzRegressions, AnExpandedArgumentIsWrittenEagerly) {
  auto f = compile([](const Tensor& x) { return x.diagonal().fill_(2.0).clone(); });
  Tensor x = ramp({1, 3}).expand({3, 3});
  f(x);
  expect_same(x.clone(), full({3, 3}, 2.0));
}

TEST(FuzzRegressions, AnotherBranchAfterASizeThatTheDataDecides) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor found = nonzero(x);
    return y.sum().item() > 0 ? found + 1 : found * 2;
  };
  auto compiled = compile(f);
  for (int64_t sign : {1, -1, 1}) {
    Tensor x = tensor({0, 1, sign > 0 ? 1 : 0, 1}), y = full({2}, double(sign));
    expect_same(compiled(x, y), f(x, y));
  }
}

TEST(FuzzRegressions, ChecksOfSymbolicSizesAreGuards) {
  auto f = compile([](const Tensor& x) { return std::get<0>(topk(x, 3)); }, {.dynamic = Dynamic::kTrue});
  expect_same(f(ramp({5})), std::get<0>(topk(ramp({5}), 3)));
  EXPECT_THROW(f(ramp({2})), Error);
}

TEST(FuzzRegressions, ASizeThatComesToOneBroadcasts) {
  auto f = [](const Tensor& x) { return x + x.slice(0, 1, -1); };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  expect_same(compiled(ramp({3})), f(ramp({3})));
}

TEST(FuzzRegressions, ReshapeOfSizesThatBecomeEqualIsAView) {
  auto f = compile([](const Tensor& x) { return x.reshape({-1, x.size(0)}); }, {.dynamic = Dynamic::kTrue});
  f(ramp({3, 4}).t());
  Tensor x = ramp({3, 3}).t();
  EXPECT_TRUE(f(x).is_alias_of(x));
}

TEST(FuzzRegressions, TheResultOfAnExpandedElementIsContiguous) {
  EXPECT_TRUE((ones({1}).expand({1}) * 2).is_contiguous());
}

TEST(FuzzRegressions, AWriteToAReshapeDependsOnTheSizes) {
  // One row: the half is in order and its reshape a look at it; of several rows it is a copy.
  auto f = [](const Tensor& x) {
    Tensor half = x.chunk(2, -1).at(1);
    half.reshape({-1}).add_(1);
    return half + 0;
  };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t rows : {3, 1, 2}) expect_same(compiled(ramp({rows, 4})), f(ramp({rows, 4})));
}

// Kernels that run side by side must not overwrite what another one of them reads: the gradient of the norm's weight was
// computed from what the gradient of the convolution had replaced.
TEST(FuzzRegressions, SiblingKernelsLeaveTheirCommonOperand) {
  nn::Sequential net(nn::Conv2d(2, 3, 2), nn::BatchNorm2d(3), nn::GELU(), nn::Flatten(), nn::Linear(48, 2));
  net->eval();
  Tensor x = sin(ramp({2, 2, 5, 5})), weights = cos(ramp({2, 2}));
  auto gradients = [&](auto f) { return autograd::grad({(f(x) * weights).sum()}, net->parameters()); };
  TensorList want = gradients(net), got = gradients(compile(net));
  for (size_t i = 0; i < want.size(); ++i) expect_same(got[i], want[i]);
}

TEST(FuzzRegressions, AWriteAsksForSizesOfTheData) {
  expect_same_calls([](const Tensor& x) { return nonzero(x > 0).view_as(zeros({2, 3})).fill_(1); },
                    {ramp({2, 3}), ramp({2, 3}) * 2, ramp({2, 3})});
  expect_same_calls([](const Tensor& x) { return nonzero(x > 0).transpose(0, 1).reshape({-1}).fill_(1); },
                    {ramp({2, 3}), ramp({2, 3}) - 1, ramp({2, 3})});
}

TEST(FuzzRegressions, ASizeThatComesToOneBroadcastsAfterABreak) {
  TensorList sizes = {ramp({4, 3}), ramp({2, 3}), ramp({3, 3}), ramp({2, 3})};
  auto after_break = [](const Tensor& x) {
    Tensor y = x.slice(0, 1);
    if (x.sum().item() > 1e9) return y;
    return x.clone().copy_(y.slice(0, 0, 1)) + y.slice(0, 0, 1);
  };
  expect_same_calls(after_break, sizes, {.dynamic = Dynamic::kTrue});
  // Eager broadcasts at two rows alone.
  auto two_rows = [](const Tensor& x) {
    Tensor y = x.slice(0, 1);
    if (x.sum().item() > 1e9 || x.size(0) != 2) return y * 2;
    return x.clone().copy_(y) * y + y.expand(x.sizes());
  };
  expect_same_calls(two_rows, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls(two_rows, sizes);
}

TEST(FuzzRegressions, ASizeOfTheDataThatComesToOneBroadcasts) {
  auto f = [](const Tensor& x) {
    Tensor kept = masked_select(x.select(0, 0), x.select(0, 0) > 0);
    return x.clone().copy_(kept.view({-1, 1})) + kept.view({-1, 1});
  };
  // Three rows: one value kept, or three.
  expect_same_calls(f, {tensor({{1.0, -1.0, -1.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
                        tensor({{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
                        tensor({{-1.0, -1.0, 7.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}})});
}

TEST(FuzzRegressions, ATruthValueAsAnIndexIsWrittenTo) {
  for (bool truth : {true, false})
    expect_same_calls(
        [truth](const Tensor& x) {
          Tensor y = x.index({x.sum() > (truth ? -100 : 100)}).view({-1}).mul_(2);
          return y + 1;
        },
        {ramp({2, 3}), ramp({2, 3}) * 2, ramp({2, 3})});
}

TEST(FuzzRegressions, ResultsOfAViewThatIsDenseAtSomeSizesOnly) {
  TensorList sizes = {ramp({5, 3}), ramp({4, 3}), ramp({6, 3}), ramp({5, 3}), ramp({7, 3})};
  for (auto& size : TensorList(sizes)) sizes.push_back(size.t());
  auto f = [](const Tensor& x) { return unfold(x.transpose(0, -1), 0, 2, 2) * 0.5; };
  auto g = [](const Tensor& x) { return unfold(x, 0, 2, 2).t() * 0.5; };
  expect_same_calls(f, {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 7}), ramp({3, 4})}, {.dynamic = Dynamic::kTrue});
  expect_same_calls(f, {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 7}), ramp({3, 4})});
  expect_same_calls(g, {ramp({5}), ramp({4}), ramp({6}), ramp({7}), ramp({4})}, {.dynamic = Dynamic::kTrue});
}

TEST(FuzzRegressions, ContiguousIsACopyAtSomeSizesOnly) {
  TensorList sizes = {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 3}), ramp({2, 4}), ramp({3, 4})};
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).contiguous(); }, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).contiguous().add_(1).sum(); }, sizes,
                    {.dynamic = Dynamic::kTrue});
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).reshape({-1}).add_(1).sum(); }, sizes,
                    {.dynamic = Dynamic::kTrue});
}

// At some sizes a dimension of the pool's result is 1, and lies in memory where it likes.
TEST(FuzzRegressions, ABreakAtSizesWhoseResultsLieOtherwise) {
  auto f = [](const Tensor& x) {
    Tensor pooled = max_pool2d(x, {3, 2}, {2, 3}, {1, 1}, {2, 1}, true);
    return x.mean().item<double>() < 0.5 ? -x + pooled.sum() : x * 2;
  };
  auto compiled = compile(f);
  for (auto [rows, columns] : {std::pair{4, 6}, {5, 7}, {3, 3}, {3, 3}, {4, 3}})
    for (double shift : {0.0, 2.0, -1.0}) {
      Tensor x = cos(ramp({1, 2, rows, columns})) + shift;
      expect_same(compiled(x), f(x));
    }
}

// It finds what halving finds.
TEST(FuzzRegressions, ASearchInASequenceThatIsNotSortedIsTheSameInTheInterpreter) {
  Tensor sequence = cos(ramp({2, 7}) * 3), values = sin(ramp({2, 5}));
  for (bool right : {false, true}) {
    auto f = [=](const Tensor& a, const Tensor& b) { return searchsorted(a, b, false, right); };
    expect_same(compile(f, {.backend = "interpreter"})(sequence, values), f(sequence, values));
  }
}

TEST(FuzzRegressions, QuestionsAboutOneSizeOfTheDataAreToldApart) {
  auto f = [](const Tensor& x) {
    Tensor found = nonzero(x), copy = x.clone();
    copy.data_ptr<float>();  // from here on the function is called every time
    Dim count = found.size(0);
    return x * (count == 2 ? 1 : 10) + (2 < count ? 100 : 0) + (2 <= count ? 1000 : 0);
  };
  expect_same_calls(f, {tensor({1.0, 0.0, 2.0, 3.0}), tensor({1.0, 0.0, 2.0, 0.0}), tensor({1.0, 0.0, 0.0, 0.0}),
                        tensor({1.0, 0.0, 2.0, 3.0})});
}

TEST(FuzzRegressions, TheHostReadsALookWhosePathHasSizes) {
  auto f = [](const Tensor& x) { return x + double(x.t().chunk(2, 0).at(1).data_ptr<float>()[0]); };
  auto g = [](const Tensor& x) { return x + from_data(x.flatten().to_vector<float>(), {x.numel()}).view(x.sizes()); };
  TensorList sizes = {ramp({3, 4}), ramp({5, 7}), ramp({2, 3}), ramp({6, 4})};
  expect_same_calls(f, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls(g, sizes, {.dynamic = Dynamic::kTrue});
}

TEST(FuzzRegressions, ADimensionThatWasOfSizeOneStaysInItsPlace) {
  auto f = [](const Tensor& x) { return cumprod(unfold(x, 1, 4, 1), 1); };
  auto g = [](const Tensor& x) { return conv1d(x.slice(0, 0, 1).repeat({1, 1, 2}).slice(2, 0, 7), x); };
  expect_same_calls(f, {ramp({2, 4}), ramp({2, 5}), ramp({2, 7})}, {.dynamic = Dynamic::kTrue});
  expect_same_calls(g, {ramp({2, 4, 6}), ramp({2, 5, 7}), ramp({2, 3, 4})});
}

TEST(FuzzRegressions, OneTensorReturnedTwiceIsOneAlsoWhereItsReshapeIsACopy) {
  auto f = compile(
      [](const Tensor& x) {
        Tensor y = unfold(x, 1, 4, 1).reshape({-1, 4});
        return TensorList{y, y};
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {4, 5, 6, 4}) {
    TensorList results = f(ramp({3, n}));
    EXPECT_TRUE(results[0].is_alias_of(results[1]));
    expect_same(results[1], unfold(ramp({3, n}), 1, 4, 1).reshape({-1, 4}));
  }
}

TEST(FuzzRegressions, ABranchOfCondTakesAViewFromBeforeABreak) {
  auto f = [](const Tensor& x) {
    Tensor y = x.slice(0, 1), z = x * 2;
    if (x.sum().item<double>() > 1e9) return x;
    return cond(x.any(), [&](const Tensor& u) { return u * y.mean(); }, [&](const Tensor& u) { return u - z[0]; }, x);
  };
  expect_same(compile(f)(ramp({4})), f(ramp({4})));
}

// The order in which elements of one place are written would decide.
TEST(FuzzRegressions, WindowsThatOverlapAreNotWritten) {
  auto f = [](const Tensor& x) { return unfold(x, 0, 3, 2).mul_(2).sum(); };
  auto compiled = compile(f), dynamic = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t size : {3, 4, 5, 4, 7, 3}) {
    Tensor a = ramp({size}), b = ramp({size}), c = ramp({size});
    if (size > 4) {
      for (auto call : {std::function<void()>([&] { f(a); }), {[&] { compiled(b); }}, {[&] { dynamic(c); }}}) {
        try {
          call();
          ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("share one place in memory"), std::string::npos) << error.what();
        }
      }
    } else {
      Tensor want = f(a);
      expect_same(compiled(b), want);
      expect_same(dynamic(c), want);
    }
    expect_same(b, a);
    expect_same(c, a);
  }
}

TEST(FuzzRegressions, ResultsOfControlFlowLieAsTheirFunctionsLeaveThem) {
  auto loop = [](const Tensor& x) {
    return while_loop([](const Tensor& u) { return u.abs().sum() > 1; }, [](const Tensor& u) { return u * 0.5; }, x);
  };
  auto branch = [](const Tensor& x) {
    return cond(x.sum() > 0, [&](const Tensor& u) { return u * x.mean(); }, [&](const Tensor& u) { return u - x.sum(); }, x);
  };
  auto turned = [](auto f) { return [f](const Tensor& x) { return f(x.t()); }; };
  auto windows = [](auto f) { return [f](const Tensor& x) { return f(unfold(x, 0, 2, 2)); }; };
  TensorList sizes = {ramp({4, 4}), ramp({4, 6}) * -1, ramp({5, 3}), ramp({5, 3}) * 0, ramp({6, 3})};
  for (auto dynamic : {Dynamic::kAuto, Dynamic::kTrue}) {
    expect_same_calls(turned(loop), sizes, {.dynamic = dynamic});
    expect_same_calls(turned(branch), sizes, {.dynamic = dynamic});
    expect_same_calls(windows(loop), sizes, {.dynamic = dynamic});
    expect_same_calls(windows(branch), sizes, {.dynamic = dynamic});
  }
}

// How many elements there are is known only once the program has come there.
TEST(FuzzRegressions, ExtremesOfAsManyAsTheDataDecides) {
  auto largest = [](const Tensor& x) { return masked_select(x, x > 0).amax(); };
  auto first = [](const Tensor& x) { return masked_select(x, x > 0).argmax(); };
  auto weights = [](const Tensor& x) { return softmax(masked_select(x, x > 0), 0); };
  for (auto backend : {"sinter", "eager", "interpreter"}) {
    auto fast_largest = compile(largest, {.backend = backend});
    auto fast_first = compile(first, {.backend = backend});
    auto fast_weights = compile(weights, {.backend = backend});
    for (int i = 0; i < 2; ++i) {
      expect_same(fast_largest(ramp({6})), largest(ramp({6})));
      expect_same(fast_first(ramp({6})), first(ramp({6})));
      EXPECT_THROW(fast_largest(ramp({6}) - 100), Error);
      EXPECT_THROW(fast_first(ramp({6}) - 100), Error);
      EXPECT_EQ(fast_weights(ramp({6}) - 100).numel(), 0);
    }
  }
}

TEST(FuzzRegressions, TheFirstNoneOfASingleNumberIsItself) {
  Tensor x = ramp({}) + 7;
  for (int64_t k : {0, 1}) {
    expect_same(std::get<0>(topk(x, k)), x);
    expect_same(compile([k](const Tensor& t) { return std::get<0>(topk(t, k)); }, {.backend = "interpreter"})(x), x);
  }
}

TEST(FuzzRegressions, ADimensionThatIsOneAtSomeSizesIsSqueezedThere) {
  TensorList sizes = {ramp({4, 3}), ramp({5, 3}), ramp({2, 3}), ramp({6, 3})};
  for (auto dynamic : {Dynamic::kAuto, Dynamic::kTrue})
    expect_same_calls([](const Tensor& x) { return x.slice(0, 1).squeeze(0) * 2; }, sizes, {.dynamic = dynamic});
  auto f = [](const Tensor& x) { return std::get<0>(unique(x)).squeeze(0).transpose(0, 0) + 1; };
  auto compiled = compile(f);
  for (double scale : {1.0, 0.0, 1.0, 0.0}) expect_same(compiled(ramp({4}) * scale), f(ramp({4}) * scale));
}

// A register holds more digits of a half-precision value than memory does: what is stored is what everybody goes on with.
TEST(FuzzRegressions, AStoredValueIsTheOneThatTheRestOfTheKernelSees) {
  Tensor x = rand({64, 33}).to(kBFloat16), w = rand({33, 16}).to(kBFloat16);
  auto expect_stored = [](const std::tuple<Tensor, Tensor>& results) {
    expect_same(std::get<1>(results), std::get<0>(results).to(kFloat32));
  };
  auto with = [](auto f) {
    return compile([f](const Tensor& a, const Tensor& b) {
      Tensor y = f(a, b);
      return std::tuple{y, y.to(kFloat32)};
    });
  };
  expect_stored(with([](const Tensor& a, const Tensor&) { return a * 1.1; })(x, w));
  expect_stored(with([](const Tensor& a, const Tensor&) { return (a * 1.1).sum(-1, true); })(x, w));
  expect_stored(with([](const Tensor& a, const Tensor& b) { return matmul(a, b) + 0.3; })(x, w));
  expect_stored(with([](const Tensor& a, const Tensor& b) { return matmul(a, b); })(x, w));
  auto seen_through_a_view = compile([](const Tensor& a) {
    Tensor y = a * 1.1;
    return std::tuple{y.t(), y.to(kFloat32)};
  });
  auto [t, y] = seen_through_a_view(x);
  expect_same(y, t.t().to(kFloat32));
}

// Op by op, values are row-major; the memory that was written to was not.
TEST(FuzzRegressions, AWriteThroughALookThatOnlyTheFirstLayoutAllows) {
  auto f = [](const Tensor& x) {
    x.permute({1, 0}).slice(0, 0, 2).view({-1}).mul_(2.0);
    return x + 1;
  };
  for (const char* backend : {"sinter", "eager", "interpreter"}) {
    Tensor x = ramp({6, 4}).t(), y = ramp({6, 4}).t();
    expect_same(compile(f, {.backend = backend})(x), f(y));
    expect_same(x, y);
  }
}

// Three rows make one piece of memory of what is none for more of them.
TEST(FuzzRegressions, AReshapeThatIsALookAtOneSizeOnly) {
  auto f = [](const Tensor& x) {
    Tensor flat = x.diagonal(1).reshape({-1}) * 2, y = x;
    for (int64_t k = 0; k < 1 + x.abs().sum().item<int64_t>() % 3; ++k) y = y * 0.5;
    return flat.sum() + y;
  };
  TensorList sizes;
  for (int64_t rows : {4, 5, 3, 6, 3}) sizes.push_back(ramp({rows + 2, rows, 2}).transpose(0, -1) + double(rows));
  expect_same_calls(f, sizes);
}

TEST(FuzzRegressions, AReshapeOfASingleWindowIsALook) {
  auto f = [](const Tensor& x) {
    Tensor windows = unfold(x, 0, 3, 2);
    return windows.reshape({-1, windows.size(0)});
  };
  auto compiled = compile(f);
  for (int64_t rows : {4, 5, 3, 9, 4}) {
    Tensor x = ramp({rows}), result = compiled(x);
    expect_same(result, f(x));
    EXPECT_EQ(result.is_alias_of(x), f(x).is_alias_of(x)) << rows;
  }
}

// In one kernel and in two: what is compared is rounded as what was stored is.
TEST(FuzzRegressions, TheLargestOfHalfPrecisionNumbersIsOneOfThem) {
  for (DType dtype : {kBFloat16, kFloat16})
    for (int64_t dim : {0, 1}) {
      Tensor a = rand({64, 65}).to(dtype), b = (rand({64, 65}) + 0.5).to(dtype);
      auto f = [dim](const Tensor& a, const Tensor& b) {
        Tensor y = a * b, largest = y.amax({dim}, true);
        return std::tuple{(y == largest).any(dim), (y >= largest).any(dim), y.argmax(dim, true), y, largest};
      };
      auto [equal, not_less, where, y, largest] = compile(f)(a, b);
      EXPECT_TRUE(equal.all().item<bool>()) << dtype << dim;
      EXPECT_TRUE(not_less.all().item<bool>()) << dtype << dim;
      expect_same(gather(y, dim, where), largest);
      auto hidden = compile([f](const Tensor& a, const Tensor& b) { return std::get<0>(f(a, b)); })(a, b);
      EXPECT_TRUE(hidden.all().item<bool>()) << dtype << dim;
    }
}

// Of elements that are equal as they are stored, the first.
TEST(FuzzRegressions, ASearchBehindAProductRoundsFirst) {
  for (DType dtype : {kBFloat16, kFloat16}) {
    Tensor x = rand({64, 16}).to(dtype), w = rand({16, 512}).to(dtype), y = rand({64, 512}).to(dtype);
    auto f = [](const Tensor& x, const Tensor& w, const Tensor& y) {
      Tensor h = mm(x, w);
      return std::tuple{(h + y).argmax(-1), h};
    };
    expect_same(std::get<0>(compile(f)(x, w, y)), std::get<0>(f(x, w, y)));
  }
}

TEST(FuzzRegressions, NoHalfPrecisionNumberExceedsTheLargest) {
  for (DType dtype : {kBFloat16, kFloat16}) {
    Tensor a = rand({64, 65}).to(dtype), b = (rand({64, 65}) + 0.5).to(dtype);
    auto f = [](const Tensor& a, const Tensor& b) {
      Tensor y = a * b;
      return isnan(sqrt(y.amax({0}, true) - y)).any();
    };
    EXPECT_FALSE(compile(f)(a, b).item<bool>()) << dtype;
  }
}

// Ones and zeros are whole numbers until something else is put beside them.
TEST(FuzzRegressions, AnIdentityWithABorder) {
  for (DType dtype : {kFloat32, kFloat64, kBFloat16, kInt64}) {
    auto f = [dtype](const Tensor& x) {
      return constant_pad_nd(eye(3, 4, dtype), {2, 1, 0, 3}, dtype == kInt64 ? 7 : 1.5) * x;
    };
    Tensor x = ones({6, 7}).to(dtype);
    expect_same(compile(f)(x), f(x));
  }
}

// Whether a reshape is a look was decided by how the argument lies, and holds behind a break too.
TEST(FuzzRegressions, AReshapeOfARepeatedArgumentBehindABreak) {
  auto f = [](const Tensor& x) {
    Tensor twice = x.unsqueeze(1).expand({4, 2}).flatten(0, 1);
    double count = (x > 0).sum().item<double>();
    return -twice + count;
  };
  Tensor x = tensor({1.5}).expand({4});
  auto g = compile(f);
  for (int call = 0; call < 3; ++call) expect_same(g(x), f(x));
}

TEST(FuzzRegressions, RepeatInterleaveHasMemoryOfItsOwn) {
  for (Tensor x : {tensor({1.0, 2.0}), tensor({3.0}).expand({2})})
    for (int64_t repeats : {1, 2}) {
      Tensor y = repeat_interleave(x, repeats, 0);
      y.zero_();
      EXPECT_TRUE((x != 0).all().item<bool>()) << repeats;
    }
}

// A compiler that knows copysign(x, 2) for an absolute value must not forget it where that is compared: at the end of a row, one
// by one, and in vectors.
TEST(FuzzRegressions, ACopiedSignIsCompared) {
  for (DType dtype : {kFloat32, kFloat64, kBFloat16})
    for (int64_t step : {1, 2, 3})
      for (double sign : {2.0, -2.0}) {
        auto f = [sign](const Tensor& x) {
          Tensor y = copysign(x, sign);
          return std::tuple{relu(y), clamp_min(y, 0.0), clamp_max(y, 0.0), where(y > 0, y, 0.0), where(y != y, y, where(y < 0, y, 1.0))};
        };
        Tensor x = (ramp({40 * step}) - 20).to(dtype).slice(0, {}, {}, step);
        auto want = f(x), got = compile(f)(x);
        std::apply([&](auto&... each) { std::apply([&](auto&... wanted) { (expect_same(each, wanted), ...); }, want); }, got);
      }
}

}  // namespace
}  // namespace sinter
