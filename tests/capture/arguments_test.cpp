// Which types arguments and results may have: each is looked at in every call, or does not compile.
#include <deque>
#include <functional>
#include <initializer_list>
#include <list>
#include <ranges>
#include <set>
#include <unordered_map>
#include <variant>

#include "common.h"

namespace sinter {
namespace {

using capture::CapturableArgument;
using capture::CapturableResult;

enum class Kind : uint8_t { kDouble, kNegate };
struct Unlisted {
  Tensor x;
};
struct Batch {
  Tensor x;
  double factor = 1;
  SINTER_FIELDS(x, factor)
};

// --- what is taken
static_assert(CapturableArgument<Tensor> && CapturableArgument<const Tensor&> && CapturableArgument<TensorArg>);
static_assert(CapturableArgument<Dim> && CapturableArgument<Scalar> && CapturableArgument<Shape> &&
              CapturableArgument<IntList>);
static_assert(CapturableArgument<bool> && CapturableArgument<uint64_t> && CapturableArgument<float> &&
              CapturableArgument<Kind>);
static_assert(CapturableArgument<std::string> && CapturableArgument<std::string_view> &&
              CapturableArgument<const char (&)[4]>);
static_assert(CapturableArgument<std::vector<Tensor>> && CapturableArgument<std::array<Tensor, 2>>);
static_assert(CapturableArgument<std::deque<Tensor>> && CapturableArgument<std::list<Tensor>>);
static_assert(CapturableArgument<std::optional<Tensor>> && CapturableArgument<std::tuple<Tensor, int, std::string>>);
static_assert(CapturableArgument<std::pair<Tensor, Tensor>> && CapturableArgument<std::map<std::string, Tensor>>);
static_assert(CapturableArgument<std::unordered_map<int64_t, TensorList>> && CapturableArgument<std::vector<bool>>);
static_assert(CapturableArgument<std::set<int64_t>> && CapturableArgument<std::initializer_list<int64_t>>);
static_assert(CapturableArgument<std::span<const double>> && CapturableArgument<std::span<int64_t>>);
static_assert(CapturableArgument<Batch> && CapturableArgument<std::vector<Batch>>);
static_assert(CapturableArgument<nn::Linear> && CapturableArgument<nn::LinearImpl*> &&
              CapturableArgument<Tensor (*)(Tensor)>);

// --- what is refused: pointers at what may be assigned anew
static_assert(!CapturableArgument<const Tensor*> && !CapturableArgument<Tensor*> && !CapturableArgument<Tensor[2]>);
static_assert(!CapturableArgument<double*> && !CapturableArgument<const int64_t*> && !CapturableArgument<Batch*>);
static_assert(!CapturableArgument<void*> && !CapturableArgument<char*> && !CapturableArgument<Tensor**>);
static_assert(!CapturableArgument<std::shared_ptr<Tensor>> && !CapturableArgument<std::unique_ptr<Tensor>>);
static_assert(!CapturableArgument<std::shared_ptr<const Batch>> && !CapturableArgument<std::weak_ptr<Tensor>>);
static_assert(!CapturableArgument<std::vector<const Tensor*>> && !CapturableArgument<std::optional<double*>>);
static_assert(!CapturableArgument<std::vector<Tensor>::iterator>);
// looks at the caller's own tensors
static_assert(!CapturableArgument<std::span<const Tensor>> && !CapturableArgument<std::span<Tensor>>);
static_assert(!CapturableArgument<std::span<const Tensor, 2>> && !CapturableArgument<std::initializer_list<Tensor>>);
static_assert(!CapturableArgument<std::span<const Dim>> && !CapturableArgument<std::span<Batch>>);
static_assert(!CapturableArgument<std::ranges::ref_view<std::vector<Tensor>>>);
static_assert(!CapturableArgument<std::vector<std::span<const Tensor>>>);
static_assert(!CapturableArgument<std::reference_wrapper<Tensor>> &&
              !CapturableArgument<std::reference_wrapper<const Tensor>>);
static_assert(!CapturableArgument<std::tuple<const Tensor&>> && !CapturableArgument<std::pair<int, Tensor&>>);
// what has no leaves that are known, or too wide ones
static_assert(!CapturableArgument<Unlisted> && !CapturableArgument<std::vector<Unlisted>>);
static_assert(!CapturableArgument<std::function<Tensor(Tensor)>> && !CapturableArgument<std::variant<Tensor, double>>);
static_assert(!CapturableArgument<long double> && !CapturableArgument<decltype([](int x) { return x; })>);
static_assert(!CapturableArgument<std::map<Dim, Tensor>> && !CapturableArgument<std::nullptr_t>);

// --- results own what they hold
static_assert(CapturableResult<void> && CapturableResult<Tensor> && CapturableResult<std::tuple<Tensor, Dim, Scalar>>);
static_assert(CapturableResult<std::string> && CapturableResult<Batch> &&
              CapturableResult<std::map<std::string, Tensor>>);
static_assert(CapturableResult<std::set<int64_t>> && CapturableResult<std::vector<bool>>);
static_assert(!CapturableResult<std::string_view> && !CapturableResult<const char*> && !CapturableResult<TensorArg>);
static_assert(!CapturableResult<std::span<const double>> && !CapturableResult<std::span<Tensor>>);
static_assert(!CapturableResult<const Tensor*> && !CapturableResult<std::vector<const char*>>);
static_assert(!CapturableResult<std::initializer_list<int64_t>>);

// The function on each value of an argument, twice in turn: compiled calls must see which one it is, and leave it alone.
template <class T, class F>
void expect_followed(F f, const T& one, const T& other) {
  auto fast = compile(f);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(same(fast(one), f(one)));
    EXPECT_TRUE(same(fast(other), f(other)));
  }
}

TEST(Arguments, ContainersOfTensorsAreFollowedAndLeftAlone) {
  Tensor a = wave({3}), b = wave({3}, 1), c = wave({2, 3}, 2);
  auto sum = [](const auto& tensors) {
    Tensor total = zeros({3});
    for (auto& t : tensors) total = total + t.reshape({-1}).slice(0, 0, 3);
    return total;
  };
  expect_followed<std::vector<Tensor>>([=](const std::vector<Tensor>& x) { return sum(x); }, {a, b}, {b, b, c});
  expect_followed<std::array<Tensor, 2>>([=](const std::array<Tensor, 2>& x) { return sum(x); }, std::array{a, b},
                                         std::array{c, b});
  expect_followed<std::deque<Tensor>>([=](const std::deque<Tensor>& x) { return sum(x); }, {a}, {b, c});
  expect_followed<std::list<Tensor>>([=](const std::list<Tensor>& x) { return sum(x); }, {a}, {b, c});
  expect_followed<std::optional<Tensor>>([](const std::optional<Tensor>& x) { return x ? *x * 2 : zeros({3}); },
                                         std::optional<Tensor>(a), std::optional<Tensor>());
  expect_followed<std::pair<Tensor, double>>([](const std::pair<Tensor, double>& x) { return x.first * x.second; },
                                             {a, 2.0}, {b, 3.0});
  expect_followed<std::tuple<Tensor, std::string>>(
      [](const std::tuple<Tensor, std::string>& x) { return std::get<0>(x) * double(std::get<1>(x).size()); },
      {a, "ab"}, {b, "a text of more than eight bytes"});
  expect_followed<std::map<std::string, Tensor>>(
      [=](const std::map<std::string, Tensor>& x) { return sum(std::vector{x.begin()->second}); }, {{"k", a}},
      {{"l", b}});
  expect_followed<Batch>([](const Batch& x) { return x.x * x.factor; }, {a, 2}, {b, 2});
  EXPECT_FALSE(a.is_traced());
  EXPECT_FALSE(b.is_traced());
  EXPECT_TRUE(same(a, wave({3})));
}

TEST(Arguments, AContainerWhoseTensorIsAssignedAnewIsFollowed) {
  auto f = compile([](const std::vector<Tensor>& x, const Batch& batch) { return x[0] + batch.x; });
  std::vector<Tensor> list{zeros({2})};
  Batch batch{zeros({2})};
  EXPECT_TRUE(same(f(list, batch), zeros({2})));
  list[0] = ones({2});
  EXPECT_TRUE(same(f(list, batch), ones({2})));
  batch.x = full({2}, 5.0);
  EXPECT_TRUE(same(f(list, batch), full({2}, 6.0)));
  EXPECT_EQ(programs_of(f), 1);
}

TEST(Arguments, NumbersAndTextAreFollowed) {
  Tensor a = wave({3});
  expect_followed<std::vector<double>>([=](const std::vector<double>& x) { return a * x[0]; }, {2.0}, {3.0});
  expect_followed<std::vector<double>>([=](std::span<const double> x) { return a * x[1]; }, std::vector{1.0, 2.0},
                                       std::vector{1.0, 3.0});
  expect_followed<std::set<int64_t>>([=](const std::set<int64_t>& x) { return a * double(*x.begin()); }, {2, 9},
                                     {3, 9});
  expect_followed<std::vector<bool>>([=](const std::vector<bool>& x) { return x[1] ? a : -a; }, {true, true},
                                     {true, false});
  expect_followed<Kind>([=](Kind x) { return x == Kind::kNegate ? -a : a * 2; }, Kind::kDouble, Kind::kNegate);
  expect_followed<std::string>([=](std::string_view x) { return a * double(x.size()); }, std::string("one"),
                               std::string("fourteen bytes"));
  expect_followed<const char*>([=](const char* x) { return x ? a * double(x[0]) : a; }, static_cast<const char*>("b"),
                               static_cast<const char*>(nullptr));
  expect_followed<uint64_t>([=](uint64_t x) { return a * double(x >> 60); }, ~uint64_t(0), uint64_t(1) << 61);
  expect_followed<std::unordered_map<int64_t, double>>(
      [=](const std::unordered_map<int64_t, double>& x) { return a * x.at(7); }, {{7, 2.0}}, {{7, 3.0}});
}

// The words are those of the text and not of its place.
TEST(Arguments, TextThatChangesInPlaceIsFollowed) {
  auto f = compile([](const Tensor& x, const char* how) { return std::string_view(how) == "neg" ? -x : x * 2; });
  char text[] = "neg";
  Tensor x = wave({3});
  EXPECT_TRUE(same(f(x, text), -x));
  std::strcpy(text, "dup");
  EXPECT_TRUE(same(f(x, text), x * 2));
}

Tensor twice(Tensor x) { return x * 2; }
Tensor negated(Tensor x) { return -x; }

TEST(Arguments, FunctionsAndModulesAreTakenByIdentity) {
  Tensor x = wave({2, 4});
  auto apply = compile([](const Tensor& x, Tensor (*f)(Tensor)) { return f(x); });
  EXPECT_TRUE(same(apply(x, twice), x * 2));
  EXPECT_TRUE(same(apply(x, negated), -x));

  auto f = compile([](const nn::Linear& layer, const Tensor& x) { return matmul(x, layer->weight.t()); });
  nn::Linear one(4, 3), other(4, 3);
  for (auto& layer : {one, other, one}) EXPECT_TRUE(close(f(layer, x), matmul(x, layer->weight.t())));
  // Another module may come to lie where one was; the program watches that it is gone though it never called it.
  for (int i = 0; i < 4; ++i) {
    nn::Linear fresh(4, 3);
    EXPECT_TRUE(close(f(fresh, x), matmul(x, fresh->weight.t())));
  }
}

struct WithReference {
  Tensor& x;
  SINTER_FIELDS(x)
};

TEST(Arguments, AFieldThatIsAReferenceIsRefused) {
  Tensor mine = wave({3});
  auto f = compile([](const WithReference& w) { return w.x * 2; });
  EXPECT_TRUE(has(error_of([&] { f(WithReference{mine}); }), "the field 'x' of an argument is a reference"));
  EXPECT_FALSE(mine.is_traced());
}

TEST(Arguments, GenericFunctionsGetThemAsConst) {
  auto f = compile([](auto& x) {
    static_assert(std::is_const_v<std::remove_reference_t<decltype(x)>>);
    return x + 1;
  });
  Tensor x = zeros({2});
  EXPECT_TRUE(same(f(x), ones({2})));
}

TEST(Arguments, DisabledFunctionsGetContainersOfRealTensors) {
  auto total = compiler::disable(
      [](const std::vector<Tensor>& list) { return list[0].item<double>() + list[1].item<double>(); });
  auto f = compile([&](const Tensor& x) { return x * total(std::vector{x.sum(), x.max()}); });
  Tensor x = ones({3});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(x), full({3}, 4.0)));
}

// --- the function object

TEST(Arguments, ALambdaThatChangesItselfIsNoticed) {
  Tensor w = ones({2});
  auto f = compile([w, n = 0](const Tensor& x) mutable { return x * ++n + w; });
  for (int n = 1; n <= 3; ++n) EXPECT_TRUE(same(f(ones({2})), full({2}, double(n + 1))));
}

struct Scaled {
  Tensor table;
  double factor = 1;
  Tensor operator()(const Tensor& x) const { return x * table * factor; }
  SINTER_FIELDS(table, factor)
};
struct Model {
  Scaled scaled;
  Tensor step(const Tensor& x) { return scaled(x); }
  SINTER_FIELDS(scaled)
};

TEST(Arguments, ListedTensorsOfAFunctionObjectAreFollowed) {
  auto f = compile(Scaled{ones({2})});
  EXPECT_TRUE(same(f(ones({2})), ones({2})));
  f.target()->table = full({2}, 3.0);
  EXPECT_TRUE(same(f(ones({2})), full({2}, 3.0)));
  f.target()->table.fill_(4);
  EXPECT_TRUE(same(f(ones({2})), full({2}, 4.0)));

  Model model{{ones({2})}};
  auto step = compile(&Model::step, &model);
  EXPECT_TRUE(same(step(ones({2})), ones({2})));
  model.scaled.table = full({2}, 5.0);
  EXPECT_TRUE(same(step(ones({2})), full({2}, 5.0)));
  model.scaled.factor = 2;
  EXPECT_TRUE(same(step(ones({2})), full({2}, 10.0)));
}

}  // namespace
}  // namespace sinter
