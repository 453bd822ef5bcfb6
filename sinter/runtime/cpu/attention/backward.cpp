#include "sinter/runtime/cpu/attention/backward.h"

#include <algorithm>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/attention/core.h"
#include "sinter/runtime/cpu/attention/parts.h"
#include "sinter/runtime/cpu/flush_denormals.h"
#include "sinter/runtime/cpu/gemm/scratch.h"

namespace sinter::runtime {

using namespace attention_detail;

namespace {

constexpr int64_t kRows = 128, kKeys = 256;  // of a block of weights, which stays in the second cache

// A task is a head of keys and values with all heads of queries that share it: what flows back to the keys is added up
// in one place, in one order.
class Backward {
 public:
  explicit Backward(const AttentionBackwardProblem& problem)
      : b_(problem),
        p_(problem.forward),
        core_(attention_core(p_.isa)),
        gemm_(gemm_core(p_.isa)),
        storage_(storage_of(p_.type)),
        item_(p_.type == GemmType::f32 ? 4 : 2),
        key_stride_(round_up(kKeys, kPadding)),
        key_heads_(p_.heads / p_.group) {}

  void run() const {
    const int64_t tasks = p_.batch * key_heads_;
    auto some = [&](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      for (int64_t task = begin; task < end; ++task) head(task / key_heads_, task % key_heads_);
    };
    // Few heads leave the threads to the products inside.
    if (tasks < num_threads()) return some(0, tasks);
    parallel_for(0, tasks, 1, some);
  }

 private:
  struct Work {
    float *scores, *flow;             // [kRows, kKeys]
    float *grad_query;                // [kRows, size]
    float *grad_key, *grad_value;     // [keys, size], [keys, value_size]
    float* grad;                      // [kRows, value_size], f32
  };

  const char* row_at(const AttentionOperand& of, int64_t batch, int64_t head, int64_t row) const {
    return static_cast<const char*>(of.data) + (batch * of.batch_stride + head * of.head_stride + row * of.row_stride) * item_;
  }
  GemmOperand rows_of(const AttentionOperand& of, int64_t batch, int64_t head, int64_t row) const {
    return {row_at(of, batch, head, row), of.row_stride, 1, p_.type};
  }
  static GemmOperand transposed(GemmOperand x) { return {x.data, x.col_stride, x.row_stride, x.type}; }
  GemmOptions options(double alpha, bool accumulate) const {
    return {.alpha = alpha, .accumulate = accumulate, .isa = p_.isa};
  }

  void head(int64_t batch, int64_t key_head) const {
    const int64_t block = kRows * key_stride_;
    const int64_t sizes[] = {block, block, kRows * p_.size, p_.keys * p_.size, p_.keys * p_.value_size,
                             kRows * p_.value_size};
    int64_t all = 0;
    for (int64_t size : sizes) all += round_up(size, kPadding);
    thread_local gemm_detail::Scratch memory;
    float* at = static_cast<float*>(memory.reserve(4 * all));
    auto take = [&, i = 0]() mutable { return std::exchange(at, at + round_up(sizes[i++], kPadding)); };
    Work w{};
    for (float** part : {&w.scores, &w.flow, &w.grad_query, &w.grad_key, &w.grad_value, &w.grad}) *part = take();
    std::fill_n(w.grad_key, p_.keys * p_.size, 0.0f);
    std::fill_n(w.grad_value, p_.keys * p_.value_size, 0.0f);
    for (int64_t h = key_head * p_.group; h < (key_head + 1) * p_.group; ++h)
      for (int64_t row = 0; row < p_.queries; row += kRows)
        block_of_rows(w, batch, h, key_head, row, std::min(kRows, p_.queries - row));
    const int64_t first = (batch * key_heads_ + key_head) * p_.keys;
    store(w.grad_key, p_.keys, p_.size, b_.grad_key, first);
    store(w.grad_value, p_.keys, p_.value_size, b_.grad_value, first);
  }

  void store(const float* from, int64_t rows, int64_t size, void* to, int64_t row) const {
    if (!to) return;
    gemm_.store(from, size, rows, size, static_cast<char*>(to) + row * size * item_, storage_, size, 1);
  }

  void block_of_rows(const Work& w, int64_t batch, int64_t head, int64_t key_head, int64_t row, int64_t rows) const {
    gemm_.load(row_at(b_.grad, batch, head, row), storage_, b_.grad.row_stride, 1, rows, p_.value_size, w.grad, p_.value_size);
    std::fill_n(w.grad_query, rows * p_.size, 0.0f);
    const int64_t first = (batch * p_.heads + head) * p_.queries + row;
    const int64_t seen = p_.causal ? std::min(p_.keys, row + rows) : p_.keys;
    const GemmOperand query = rows_of(p_.query, batch, head, row), grad{w.grad, p_.value_size, 1};
    for (int64_t key = 0; key < seen; key += kKeys) {
      const int64_t keys = std::min(kKeys, seen - key);
      const GemmOperand key_rows = rows_of(p_.key, batch, key_head, key), value_rows = rows_of(p_.value, batch, key_head, key);
      gemm(rows, keys, p_.size, query, transposed(key_rows), {w.scores, key_stride_, 1}, options(p_.scale, false));
      gemm(rows, keys, p_.value_size, grad, transposed(value_rows), {w.flow, key_stride_, 1}, options(1, false));
      for (int64_t r = 0; r < rows; ++r) {
        float* scores = w.scores + r * key_stride_;
        const int64_t visible = p_.causal ? std::clamp<int64_t>(row + r + 1 - key, 0, keys) : keys;
        add_mask(scores, batch, head, row + r, key, visible);
        const WeightGradArgs args{scores, w.flow + r * key_stride_, visible, keys, b_.log_sums[first + r], b_.means[first + r]};
        if (p_.dropout.is_on())
          core_.dropped_weight_grad(args, drop_args(p_, batch, head, row + r, key));
        else
          core_.weight_grad(args);
      }
      const GemmOperand weights{w.scores, key_stride_, 1}, flow{w.flow, key_stride_, 1};
      gemm(keys, p_.value_size, rows, transposed(weights), grad, {w.grad_value + key * p_.value_size, p_.value_size, 1},
           options(1, true));
      gemm(keys, p_.size, rows, transposed(flow), query, {w.grad_key + key * p_.size, p_.size, 1}, options(p_.scale, true));
      gemm(rows, p_.size, keys, flow, key_rows, {w.grad_query, p_.size, 1}, options(p_.scale, true));
    }
    store(w.grad_query, rows, p_.size, b_.grad_query, first);
  }

  void add_mask(float* scores, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count) const {
    const AttentionMask& m = p_.mask;
    if (m.type == AttentionMaskType::kNone) return;
    const int64_t place = batch * m.batch_stride + head * m.head_stride + row * m.row_stride + key * m.key_stride;
    core_.mask(scores, static_cast<const char*>(m.data) + place * mask_item_size(m.type), m.type, m.key_stride, count);
  }

  const AttentionBackwardProblem& b_;
  const AttentionProblem& p_;
  const AttentionCore& core_;
  const gemm_detail::GemmCore<float>& gemm_;
  const gemm_detail::Storage storage_;
  const int64_t item_, key_stride_, key_heads_;
};

}  // namespace

void attention_backward(const AttentionBackwardProblem& problem) {
  SINTER_INTERNAL_ASSERT(problem.forward.type != GemmType::f64, "attention does not take f64");
  Backward(problem).run();
}

}  // namespace sinter::runtime
