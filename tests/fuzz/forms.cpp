// The expressions that programs are made of. Values stay finite and away from poles.
#include "tests/fuzz/program.h"

namespace sinter::fuzz {

namespace {

// One token stream is run and printed.
#define SINTER_FUZZ_OPERANDS [[maybe_unused]] const auto& [a, b, c, x, m, t, i, j, n, s, l, o, r, p] = operands;
#define FORM(...)                                                    \
  Form{#__VA_ARGS__, [](const Operands& operands) -> Tensor {        \
         SINTER_FUZZ_OPERANDS return __VA_ARGS__;                    \
       }}
#define CONDITION(...)                                               \
  Condition{#__VA_ARGS__, [](const Operands& operands) -> bool {     \
              SINTER_FUZZ_OPERANDS return __VA_ARGS__;               \
            }}

// --- element by element, as C++ writes it; the ops themselves come from the registry
const std::vector<Form> kPointwise = {
    FORM(a + b), FORM(a - b), FORM(a * b), FORM(a * 0.5 + b), FORM(a / (abs(b) + 1.0)), FORM(n - a), FORM(a * n),
    FORM(a * s), FORM(add(a, b, n)), FORM(minimum(a, n)), FORM(atan2(a, b + 4.0)),
    FORM(lerp(a, b, 0.3)), FORM(addcmul(a, b, c, 0.5)), FORM(where(m, a, b)), FORM(where(a > b, a, n)),
    FORM(masked_fill(a, m, n)), FORM(clamp(a, -1.0, n)), FORM(exp(clamp(a, -3.0, 3.0))), FORM(log(abs(a) + 1.0)),
    FORM(sqrt(abs(a) + 0.5)), FORM(rsqrt(square(a) + 1.0)), FORM(pow(abs(a) + 0.5, 1.5)), FORM(remainder(a, 3.0)), FORM(a > b), FORM(a <= n),
    FORM(x + 1), FORM(x * 2 - x), FORM(x % 3), FORM(x == 1), FORM(m & (a > n)), FORM(~m), FORM(m | m), FORM(a + x), FORM(a * m),
    FORM(x.to(kFloat32)), FORM(m.to(kFloat32)), FORM(a.to(kFloat64)), FORM(a.to(kFloat32)), FORM(a.to(kBFloat16)), FORM((a * 2.0).to(kInt64)),
    FORM(m.to(kInt64)),
};

// --- over dimensions, products
const std::vector<Form> kReduce = {
    FORM(a.sum()), FORM(a.sum({i})), FORM(a.sum({i}, true)), FORM(a.mean({i})), FORM(a.mean({i}, true)), FORM(a.amax({i})),
    FORM(a.amin({i}, true)), FORM(a.var({i}, 0)), FORM(a.argmax(i)), FORM(a.argmin(i, true)), FORM(std::get<0>(a.max(i))), FORM(x.sum()),
    FORM(x.sum({i})), FORM(m.any({i})), FORM(m.all({i}, true)), FORM(m.sum({i})), FORM(logsumexp(a, {i})), FORM(norm(a + 3.0, 2, {i})),
    FORM(a.softmax(i)), FORM(a.log_softmax(i)), FORM(a.cumsum(i)), FORM(x.cumsum(i)), FORM(std::get<0>(a.sort(i))),
    FORM(std::get<1>(a.sort(i, true))), FORM(std::get<0>(topk(a, 2, i))), FORM(std::get<1>(topk(a, 2, i))),
    FORM(layer_norm(a, {a.size(-1)})), FORM(rms_norm(a, {a.size(-1)}, {}, 1e-5)), FORM(normalize(a + 3.0, 2, i)), FORM(matmul(a, b)),
    FORM(matmul(a, b.transpose(-1, -2))), FORM(mm(a.t(), b)), FORM(linear(a, b)), FORM(addmm(a, b, c)), FORM(outer(a, b)),
    FORM(scaled_dot_product_attention(a.unsqueeze(0), b.unsqueeze(0), b.unsqueeze(0))),
};

// --- moving elements
const std::vector<Form> kMove = {
    FORM(cat({a, b}, i)), FORM(cat({a, a * 2.0, b}, i)), FORM(stack({a, b}, i)), FORM(a.repeat({2, 1})), FORM(repeat_interleave(a, 2, i)),
    FORM(a.flip({i})), FORM(a.roll({1}, {i})), FORM(a.tril()), FORM(a.triu(1)), FORM(pad(a, {1, 2})), FORM(constant_pad_nd(a, {0, 1}, n)),
    FORM(index_select(a, i, x)), FORM(gather(a, i, x)), FORM(embedding(a, x)), FORM(a.index({x})), FORM(a.index({Slice(), x})),
    FORM(take(a, x)), FORM(index_add(a, i, x, b)), FORM(index_copy(a, i, x, b)), FORM(index_fill(a, i, x, n)),
    FORM(scatter(a, i, x, n)), FORM(scatter_add(a, i, x, b)), FORM(scatter_reduce(a, i, x, b, "amax")), FORM(index_put(a, {x}, b)),
    FORM(index_put(a, {x}, b, true)), FORM(masked_select(a, m)), FORM(a.index({m})), FORM(nonzero(m)), FORM(nonzero(x)),
    FORM(one_hot(x, 4)), FORM(select_scatter(a, b, i, j)), FORM(slice_scatter(a, b, i, 1, 3)), FORM(searchsorted(std::get<0>(a.sort()), b)),
    FORM(where(m, x, x + 1)), FORM(x.clamp(0, 1)), FORM(x.flatten().clamp(0, 1)), FORM(arange(a.size(i))), FORM(ones_like(a)),
    FORM(zeros(a.sizes())), FORM(full({a.size(i), 2}, n)), FORM(eye(a.size(i))), FORM(tensor({1.0, 2.0, 3.0})),
};

// --- other looks at the same memory
const std::vector<Form> kViews = {
    FORM(t.t()), FORM(t.transpose(0, i)), FORM(t.transpose(-1, i)), FORM(t.select(i, j)), FORM(t[j]), FORM(t.slice(i, 1)),
    FORM(t.slice(i, 0, 2)), FORM(t.slice(i, {}, {}, 2)), FORM(t.slice(i, 1, -1)), FORM(t.narrow(i, 1, 2)), FORM(t.unsqueeze(i)), FORM(t.squeeze()), FORM(t.squeeze(i)),
    FORM(t.flatten()), FORM(t.view({-1})), FORM(t.view({t.size(0), -1})), FORM(t.view({2, -1})), FORM(t.reshape({-1, t.size(0)})),
    FORM(t.view_as(t)), FORM(t.diagonal()), FORM(t.diagonal(1)), FORM(t.unsqueeze(0).expand({2, t.size(0), -1})), FORM(t.unsqueeze(i)), FORM(a.expand_as(b)),
    FORM(unfold(t, 0, 2, 2)), FORM(t.permute({1, 0})), FORM(t.permute({2, 0, 1})), FORM(t.movedim(0, i)), FORM(t.chunk(2, i).at(1)), FORM(t.unbind(i).at(1)),
    FORM(t.split(2, i).at(0)), FORM(as_strided(t.clone(kContiguousFormat), {2, 2}, {1, 2})), FORM(t.detach()), FORM(t.detach().select(0, j)), FORM(alias(t)),
    FORM(t.contiguous()), FORM(t.clone()), FORM(t.transpose(0, -1).contiguous()), FORM(t.reshape({t.numel()})), FORM(t.unflatten(i, {-1, 2})),
};

// --- writes
const std::vector<Form> kWrites = {
    FORM(a.add_(b)), FORM(a.add_(1)), FORM(a.mul_(0.5)), FORM(a.mul_(b.sigmoid())), FORM(a.sub_(b, 0.5)), FORM(a.copy_(b)), FORM(a.copy_(b.flip({0}))), FORM(a.fill_(n)),
    FORM(a.zero_()), FORM(a.neg_()), FORM(a.tanh_()), FORM(a.relu_()), FORM(a.clamp_(-1, 1)), FORM(a.lerp_(b, 0.5)), FORM(a.addcmul_(b, c)),
    FORM(a.masked_fill_(m, n)), FORM(a.index_copy_(i, x, b)), FORM(a.index_add_(i, x, b)), FORM(a.scatter_(i, x, n)), FORM(a.scatter_add_(i, x, b)),
    FORM(a.index_put_({x}, b)), FORM(a.index_put_({m}, n)), FORM(a.select(i, j).add_(1)), FORM(a.select(i, j).copy_(b)),
    FORM(a.slice(i, 0, 2).mul_(b)), FORM(a.slice(i, 1).copy_(a.slice(i, 0, -1).clone())), FORM(a.slice(i, 1).fill_(n)), FORM(a.t().copy_(a)), FORM(a.diagonal().fill_(n)),
    FORM(a.diagonal().add_(b)), FORM(a.view({-1}).mul_(n)), FORM(a.transpose(0, -1).add_(b)), FORM(a.detach().add_(1)), FORM(x.add_(1).clamp_(0, 1)), FORM(x.fill_(1)),
    FORM(m.copy_(a > n)), FORM(m.fill_(true)), FORM(a.copy_(x)), FORM(a.uniform_()), FORM(a += b.sum()), FORM([&] { a[j] = b; return a; }()),
    FORM([&] { a.slice(i, 0, 2) = n; return a.slice(i, 0, 2); }()), FORM(a.clone().add_(b)), FORM(zeros_like(a).copy_(b)), FORM(a.contiguous().add_(b)),
    FORM(a.reshape({-1}).add_(1)),
};

// --- numbers that the host reads and gives back, as a factor, a size, a dimension
const std::vector<Form> kNumbers = {
    FORM(a * b.sum().item()), FORM(a + b.mean().item<double>()), FORM(a * (b.sum().item() * 0.25 + 1.0)), FORM(full({2}, b.sum().item(), kFloat32)),
    FORM(a.add_(b.mean().item())), FORM(a + int64_t(a.size(0))), FORM(a / a.size(i)), FORM(a * x.sum().item<int64_t>()),
    FORM(a / (1 + x.abs().sum().item<int64_t>())), FORM(a * (m.any().item<bool>() ? 2.0 : 0.5)), FORM(clamp(a, -b.abs().max().item<double>(), n)),
    FORM(where(m, a, b.mean().item<double>())), FORM(a.sum({x.abs().sum().item<int64_t>() % 2})), FORM(a.slice(0, 0, 1 + x.abs().sum().item<int64_t>() % 2)),
    FORM(zeros({1 + x.abs().max().item<int64_t>() % 3, 2}) + n), FORM(a.select(0, x.abs().sum().item<int64_t>() % 2)),
    FORM(arange(1 + m.sum().item<int64_t>() % 5)), FORM(a.fill_(b.amin().item<float>())), FORM(pow(abs(a) + 0.5, 1 + x.abs().max().item<int64_t>() % 3)),
    FORM(b.numel() == 0 ? a : a * double(b.to(kFloat32).contiguous().data_ptr<float>()[0])), FORM(a + b.to_vector<float>().at(0)),
    FORM(from_data(b.to_vector<float>(), {b.numel()})), FORM(from_data(b.to_vector<float>(), {b.numel()}).view(b.sizes()) * a),
    FORM(x.numel() == 0 ? a : a * double(x.contiguous().data_ptr<int64_t>()[0] + 1)), FORM([&] { Tensor y = a; for (int64_t k = 0; k < 1 + x.abs().sum().item<int64_t>() % 3; ++k) y = y * 0.5 + b; return y; }()),
    FORM([&] { double k = b.mean().item<double>(); return a * k + k * k; }()),
    FORM(cond(a.sum() > n, [](const Tensor& u) { return u * 2; }, [](const Tensor& u) { return sin(u); }, a)),
    FORM(cond(m.any(), [&](const Tensor& u) { return u * b.mean(); }, [&](const Tensor& u) { return u - b.sum(); }, a)),
    FORM(while_loop([](const Tensor& u) { return u.abs().sum() > 1; }, [](const Tensor& u) { return clamp(u, -99, 99) * 0.5; }, a)),
};

// --- draws, gradients, seeds
const std::vector<Form> kOther = {
    FORM(rand_like(a)), FORM(a + randn_like(a)), FORM(dropout(a, 0.5)), FORM(bernoulli(sigmoid(a))), FORM(randn({2, 3})), FORM(rand({a.size(i)})),
    FORM(randperm(a.size(i))), FORM(randint(0, 5, {a.size(i), 2})), FORM(multinomial(sigmoid(a) + 0.1, 2)), FORM(a.normal_()), FORM(a.bernoulli_(0.3)),
    FORM([&] { manual_seed(7); return rand_like(a); }()), FORM([&] { manual_seed(11); return t; }()), FORM([&] { Tensor y = rand_like(a); manual_seed(3); return y + randn_like(a); }()),
    FORM([&] { manual_seed(uint64_t(a.size(0))); return dropout(a, 0.3); }()), FORM([&] { manual_seed(uint64_t(1 + x.abs().sum().item<int64_t>())); return rand({2}); }()),
    FORM(autograd::grad({sin(a).sum()}, {a})[0]), FORM(autograd::grad({b.sum()}, {a}, {}, true)[0]),
    FORM(autograd::grad({(a * a * b).sum()}, {a, b}, {}, {}, true)[1]), FORM([&] { NoGradGuard none; return a * b; }()),
    FORM([&] { (a * b).sum().backward(); return a; }()),
    FORM([&] { Tensor w = a.detach().clone().requires_grad_(); (w * b).sum().backward(); return w.grad(); }()),
    FORM([&] { Tensor w = a.detach().clone().requires_grad_(); square(w).sum().backward(); (w * b).sum().backward(); return w.grad(); }()),
};

// --- layers, training steps, rates; where a layer is named, a is what it takes
const std::vector<Form> kState = {
    FORM(l(a)), FORM(l(a)), FORM(l(a)), FORM(l(a)), FORM(tanh(l(a))), FORM(l(a) + n), FORM(square(l(a)).mean()),
    FORM([&] { NoGradGuard none; return l(a); }()), FORM(l(a) * l(a)), FORM([&] { Tensor y = l(a); l.ptr()->train(false); return y; }()),
    FORM([&] { l.ptr()->eval(); Tensor y = l(a); l.ptr()->train(); return y; }()), FORM([&] { square(l(a)).mean().backward(); return t; }()),
    FORM([&] { l.ptr()->zero_grad(); return t; }()), FORM([&] { l.ptr()->zero_grad(false); return t; }()),
    FORM(p.at(0) * n), FORM(p.at(0).sum()), FORM([&] { NoGradGuard none; p.at(0).mul_(0.5); return t; }()),
    FORM([&] { nn::utils::clip_grad_norm_(p, 0.5); return t; }()), FORM([&] { nn::utils::clip_grad_value_(p, 0.1); return t; }()),
    FORM([&] { o.zero_grad(); return t; }()), FORM([&] { o.zero_grad(false); return t; }()), FORM([&] { o.step(); return t; }()),
    FORM([&] { o.set_lr(0.03); return t; }()), FORM([&] { o.set_lr(o.lr() * 0.5); return t; }()), FORM(t * o.lr()), FORM([&] { r.step(); return t; }()),
    FORM([&] { o.zero_grad(); Tensor loss = square(l(a)).mean(); loss.backward(); o.step(); return loss; }()),
    FORM([&] { o.zero_grad(false); Tensor loss = mse_loss(l(a), ones_like(l(a))); loss.backward(); nn::utils::clip_grad_norm_(p, 1.0); o.step(); r.step(); return loss.detach(); }()),
    FORM([&] { square(l(a)).mean().backward(); abs(l(a)).sum().backward(); o.step(); return t; }()),
};

// In the order of FormGroup.
std::span<const std::vector<Form>* const> groups() {
  static const std::vector<Form>* const all[] = {&kPointwise, &kReduce, &kMove, &kViews, &kWrites, &kNumbers, &kOther, &kState};
  return all;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

// Where the text has the name of an operand: a word of one letter that is no member.
size_t find_operand(std::string_view text, char name, size_t from) {
  for (size_t at = text.find(name, from); at != std::string_view::npos; at = text.find(name, at + 1)) {
    char before = at > 0 ? text[at - 1] : ' ', after = at + 1 < text.size() ? text[at + 1] : ' ';
    bool member = before == '.' && (at < 2 || text[at - 2] != '.');
    if (!is_word(before) && !member && !is_word(after)) return at;
  }
  return std::string_view::npos;
}

bool Form::names(char operand) const { return find_operand(text, operand, 0) != std::string_view::npos; }
bool Condition::names(char operand) const { return find_operand(text, operand, 0) != std::string_view::npos; }

const std::vector<Form>& forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> joined;
    for (auto* some : groups()) joined.insert(joined.end(), some->begin(), some->end());
    return joined;
  }();
  return all;
}

std::pair<int, int> forms_of(FormGroup group) {
  int begin = 0;
  for (int k = 0; k < int(group); ++k) begin += int(groups()[size_t(k)]->size());
  return {begin, begin + int(groups()[size_t(group)]->size())};
}

const std::vector<Condition>& conditions() {
  static const std::vector<Condition> all = {
      CONDITION(a.sum().item() > n), CONDITION(a.mean().item<double>() < n), CONDITION((a > n).any().item<bool>()),
      CONDITION(a.sum().item<float>() * 2 > n), CONDITION(x.sum().item<int64_t>() > 3), CONDITION(m.all().item<bool>()), CONDITION(s > n),
      CONDITION(a.size(0) > 4), CONDITION(a.size(0) == a.size(-1)), CONDITION(a.size(0) % 2 == 0), CONDITION(a.requires_grad()),
      CONDITION(a.sum().item() * s < b.sum().item()), CONDITION(a.numel() > 0 && a.to(kFloat32).contiguous().data_ptr<float>()[0] > n),
      CONDITION(x.abs().max().item<int64_t>() % 2 == 0), CONDITION(l.ptr()->is_training()), CONDITION(o.lr() > 0.03),
  };
  return all;
}

}  // namespace sinter::fuzz
