#include "sinter/capture/buckets.h"

#include <algorithm>
#include <mutex>

#include "sinter/capture/padding_plan.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::capture {

namespace {

CompileOptions named(CompileOptions options, std::string name) {
  options.name = std::move(name);
  return options;
}

std::vector<Buckets> checked(std::vector<Buckets> buckets) {
  check(!buckets.empty(), "bucketed: there are no Buckets");
  for (auto& b : buckets) {
    check(!b.sizes.empty() && !b.dims.empty(),
          "bucketed: Buckets need sizes, and the arguments and dimensions that have them");
    check(b.sizes[0] >= 2, "bucketed: a bucket has a size from 2 on, not {}", b.sizes[0]);
    for (size_t i = 1; i < b.sizes.size(); ++i)
      check(b.sizes[i - 1] < b.sizes[i], "bucketed: the sizes {} do not ascend",
            IntList(b.sizes.begin(), b.sizes.end()));
  }
  return buckets;
}

// The dimension as a number from 0 on.
int wrapped(const Buckets::Place& place, const Tensor& tensor) {
  int rank = int(tensor.dim());
  check(-rank <= place.dim && place.dim < rank, "bucketed: argument {} has {} dimensions, not one numbered {}",
        place.argument, rank, place.dim);
  return place.dim < 0 ? place.dim + rank : place.dim;
}

// Calls visit(group, dim) for the bucketed dimensions of an argument's tensor.
template <class F>
void for_each_place(const std::vector<Buckets>& buckets, int argument, const Tensor& tensor, F&& visit) {
  for (size_t g = 0; g < buckets.size(); ++g)
    for (auto& place : buckets[g].dims)
      if (place.argument == argument) visit(g, wrapped(place, tensor));
}

bool same_elements(const TensorImpl& a, const TensorImpl& b) {
  return a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype;
}

}  // namespace

// --- the programs

struct BucketPolicy::State {
  State(const Function& compiled)
      : options(compiled.options()), traced(Function::make(named(options, compiled.name()), {})) {
    // What a bucket does not fix becomes symbolic when it varies, and the padded size never does.
    if (options.dynamic == Dynamic::kTrue) options.dynamic = Dynamic::kAuto;
  }

  CompileOptions options;
  const std::shared_ptr<Function> traced;
  std::mutex mutex;
  std::map<std::vector<int64_t>, std::shared_ptr<Function>> functions;
};

BucketPolicy::BucketPolicy(std::vector<Buckets> buckets, const Function& compiled)
    : buckets_(checked(std::move(buckets))), name_(compiled.name()), state_(std::make_unique<State>(compiled)) {}

BucketPolicy::~BucketPolicy() = default;

std::shared_ptr<Function> BucketPolicy::function(const IntList& sizes) {
  std::lock_guard lock(state_->mutex);
  auto& function = state_->functions[{sizes.begin(), sizes.end()}];
  if (!function) function = Function::make(named(state_->options, format("{}{}", name_, sizes)), {});
  return function;
}

std::map<std::vector<int64_t>, std::shared_ptr<Function>> BucketPolicy::functions() const {
  std::lock_guard lock(state_->mutex);
  return state_->functions;
}

bool BucketPolicy::is_ready() const {
  auto all = functions();
  return std::all_of(all.begin(), all.end(), [](auto& each) { return each.second->is_ready(); });
}

void BucketPolicy::wait() const {
  for (auto& [sizes, function] : functions()) function->wait();
}

std::shared_ptr<const PaddingPlan> BucketPolicy::plan(Invocation& invocation, std::span<const TracedDim> dims,
                                                      SmallVector<int64_t, 8>& sizes) {
  auto entry = state_->traced->trace(invocation, dims, sizes);
  if (!entry) return nullptr;
  std::lock_guard lock(state_->mutex);
  if (!entry->plan) {
    entry->plan = plan_padding(name_, *entry, dims, buckets_.size());
    entry->trace = nullptr;
  }
  return entry->plan;
}

// --- a call

void BucketedCall::tensor(Tensor& tensor) {
  if (step_ == Step::kMeasure) measure(tensor);
  if (step_ == Step::kPad) pad(tensor);
  if (step_ == Step::kCut) cut(tensor);
}

void BucketedCall::measure(const Tensor& tensor) {
  auto& buckets = policy_.buckets();
  groups_.resize(buckets.size());
  leaves_.push_back({tensor, {}, argument_});
  for (size_t g = 0; g < buckets.size(); ++g) groups_[g].has_mask = groups_[g].has_mask || buckets[g].mask == argument_;
  if (!tensor.defined()) return;
  for_each_place(buckets, argument_, tensor, [&](size_t g, int dim) {
    Group& group = groups_[g];
    int64_t size = tensor.impl().sizes[size_t(dim)];
    check(group.truth < 0 || group.truth == size,
          "bucketed: dimension {} of argument {} has size {}, but others of the same Buckets have {}", dim, argument_,
          size, group.truth);
    group.truth = size;
    group.device = tensor.device();
  });
}

void BucketedCall::choose_buckets() {
  auto& buckets = policy_.buckets();
  groups_.resize(buckets.size());
  IntList chosen;
  for (size_t g = 0; g < buckets.size(); ++g) {
    Group& group = groups_[g];
    auto& sizes = buckets[g].sizes;
    check(group.truth >= 0, "bucketed: no tensor is given for argument {}, whose size decides the bucket",
          buckets[g].dims[0].argument);
    check(buckets[g].mask < 0 || group.has_mask, "bucketed: there is no argument {} to take the mask", buckets[g].mask);
    auto next = std::lower_bound(sizes.begin(), sizes.end(), group.truth);
    check(next != sizes.end() || buckets[g].pass_larger, "bucketed: a size of {} is beyond the largest bucket, {}",
          group.truth, sizes.back());
    group.padded = next != sizes.end() ? *next : group.truth;
    chosen.push_back(next != sizes.end() ? *next : 0);
  }
  function_ = policy_.function(chosen);
  step_ = Step::kPad;
}

// Whether another argument is a look at the same memory; the very same tensor does not count.
bool BucketedCall::shares_memory(const Leaf& leaf) const {
  return std::any_of(leaves_.begin(), leaves_.end(), [&](const Leaf& other) {
    return other.given.defined() && other.given.impl().buffer == leaf.given.impl().buffer &&
           !same_elements(other.given.impl(), leaf.given.impl());
  });
}

Tensor BucketedCall::padded(const Leaf& leaf, const Shape& sizes) const {
  for (auto& other : leaves_) {
    if (&other == &leaf) break;
    if (other.padded.defined() && other.given.impl().buffer == leaf.given.impl().buffer &&
        same_elements(other.given.impl(), leaf.given.impl()) && other.padded.sizes() == sizes)
      return other.padded;
  }
  const IntList& given = leaf.given.impl().sizes;
  Shape pads;
  for (size_t d = given.size(); d-- > 0;) {
    pads.push_back(0);
    pads.push_back(sizes[d] - given[d]);
  }
  bool fits = std::all_of(pads.begin(), pads.end(), [](const Dim& d) { return d.number() == 0; });
  if (!fits) return constant_pad_nd(leaf.given, pads, 0);
  return leaf.given.is_contiguous() && !shares_memory(leaf) ? leaf.given : leaf.given.clone(MemoryFormat::kContiguous);
}

void BucketedCall::pad(Tensor& tensor) {
  auto& buckets = policy_.buckets();
  int index = int(next_++);
  Leaf& leaf = leaves_[size_t(index)];
  if (!tensor.defined()) {
    for (size_t g = 0; g < buckets.size(); ++g) {
      if (buckets[g].mask != leaf.argument) continue;
      tensor = zeros({groups_[g].padded}, TensorOptions(kBool).device(groups_[g].device));
      tensor.narrow(0, 0, groups_[g].truth).fill_(true);
      dims_.push_back({index, 0, int(g)});
    }
    return;
  }
  Shape sizes = tensor.sizes();
  bool is_bucketed = false;
  for_each_place(buckets, leaf.argument, tensor, [&](size_t g, int dim) {
    check(std::none_of(dims_.begin(), dims_.end(), [&](auto& d) { return d.tensor == index && d.dim == dim; }),
          "bucketed: dimension {} of argument {} is named twice", dim, leaf.argument);
    sizes[size_t(dim)] = groups_[g].padded;
    dims_.push_back({index, dim, int(g)});
    is_bucketed = true;
  });
  if (is_bucketed) tensor = leaf.padded = padded(leaf, sizes);
}

bool BucketedCall::prepare(Invocation& invocation) {
  step_ = Step::kCut;
  next_ = 0;
  plan_ = policy_.plan(invocation, dims_, truth_);
  if (!plan_) return false;
  for (size_t g = 0; g < groups_.size(); ++g) truth_[size_t(plan_->places[g])] = groups_[g].truth;
  plan_->check_answers(policy_.name(), truth_);
  for (int index : plan_->written)
    check(!shares_memory(leaves_[size_t(index)]),
          "bucketed: {} writes to argument {}, which is padded and shares memory "
          "with another argument: pass a clone()",
          policy_.name(), leaves_[size_t(index)].argument);
  return true;
}

void BucketedCall::write_back() {
  for (int index : plan_->written) {
    Leaf& leaf = leaves_[size_t(index)];
    if (!leaf.padded.defined() || leaf.padded.impl_ptr() == leaf.given.impl_ptr()) continue;
    Tensor real = leaf.padded;
    for (size_t d = 0; d < leaf.given.impl().sizes.size(); ++d)
      real = real.narrow(int64_t(d), 0, leaf.given.impl().sizes[d]);
    leaf.given.copy_(real);
  }
}

void BucketedCall::cut(Tensor& tensor) {
  for (auto& [dim, size] : plan_->cuts[next_++]) {
    int64_t truth = size(truth_.data());
    if (tensor.impl().sizes[size_t(dim)] != truth) tensor = tensor.narrow(dim, 0, truth);
  }
}

void BucketedCall::size(Dim& size) {
  if (step_ == Step::kCut) size = plan_->sizes[next_size_++](truth_.data());
}

}  // namespace sinter::capture
