#include "sinter/runtime/cpu/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/attention/core.h"
#include "sinter/runtime/cpu/attention/parts.h"
#include "sinter/runtime/cpu/flush_denormals.h"
#include "sinter/runtime/cpu/gemm/blocked.h"
#include "sinter/runtime/cpu/gemm/core.h"

namespace sinter::runtime {

using namespace attention_detail;

namespace {

using gemm_detail::GemmCore;
using gemm_detail::Scratch;
using gemm_detail::Storage;

constexpr int64_t kRowBlock = 112;    // queries of a task: what packing a block of keys costs is spread over them
constexpr int64_t kKeyBlock = 256;    // keys between two looks at the maximum; their scores stay in the second cache
constexpr int64_t kLongBlock = 1024;  // the same for few rows, which wait for memory and want long runs of it
constexpr int64_t kFewQueries = 16;   // up to which heads that share their keys are taken together
constexpr int64_t kKeyChunk = 512;    // keys that are worth a task of their own
constexpr int64_t kEnoughTasks = 64;  // more need no cutting along the keys
constexpr float kNever = -std::numeric_limits<float>::infinity();

// What a task knows of its rows after the keys it has seen: `values` is the sum of exp(score - maximum) * value.
struct Partial {
  float *maximum, *sum, *values;
};

struct ThreadScratch {
  Scratch work, partials;
};
ThreadScratch& thread_scratch() {
  thread_local ThreadScratch scratch;
  return scratch;
}

// Tasks are (head, block of rows, chunk of keys). How they are cut depends on the sizes and the instruction set alone.
class Attention {
 public:
  explicit Attention(const AttentionProblem& p)
      : p_(p),
        gemm_(gemm_core(p.isa)),
        core_(attention_core(p.isa)),
        storage_(storage_of(p.type)),
        item_(p.type == GemmType::f32 ? 4 : 2),
        value_stride_(round_up(p.value_size, kPadding)) {
    fold_ = p.queries <= kFewQueries ? p.group : 1;
    rows_ = fold_ * p.queries;
    heads_ = p.heads / fold_;
    // Rows that fill whole micro kernels, as even as that allows.
    block_ = round_up(ceil_div(rows_, ceil_div(rows_, kRowBlock)), gemm_.max_rows);
    blocks_ = ceil_div(rows_, block_);
    block_ = std::min(block_, rows_);
    key_block_ = block_ <= gemm_detail::kMaxDotRows ? kLongBlock : kKeyBlock;
    int64_t tasks = p.batch * heads_ * blocks_;
    int64_t chunks = std::clamp<int64_t>(kEnoughTasks / tasks, 1, ceil_div(p.keys, kKeyChunk));
    // Who else is in the batch must not move a cut.
    if (is_paged()) chunks = ceil_div(p.keys, kKeyChunk);
    chunk_ = round_up(ceil_div(p.keys, chunks), kKeyBlock);
    chunks_ = ceil_div(p.keys, chunk_);
  }

  void run() {
    const int64_t blocks = p_.batch * heads_ * blocks_;
    if (chunks_ > 1)
      partials_ = static_cast<float*>(thread_scratch().partials.reserve(4 * blocks * chunks_ * partial_size()));
    const double work = double(block_) * double(std::min(chunk_, p_.keys)) * double(p_.size + p_.value_size);
    const int64_t grain = std::max<int64_t>(1, int64_t(2e5 / (work + 1e3)));
    parallel_for(0, blocks * chunks_, grain, [&](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      for (int64_t task = begin; task < end; ++task) attend(task / chunks_, task % chunks_);
    });
    if (chunks_ == 1) return;
    parallel_for(0, blocks, std::max<int64_t>(1, 20000 / (chunks_ * partial_size())), [&](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      for (int64_t block = begin; block < end; ++block) merge(block);
    });
  }

 private:
  bool is_paged() const { return p_.pages.table != nullptr; }

  // A run of rows that belong to one head.
  struct Rows {
    int64_t batch, head, first, count;
  };

  int64_t partial_size() const { return block_ * (value_stride_ + 2); }
  Partial partial_at(float* data) const {
    float* maximum = data + block_ * value_stride_;
    return {maximum, maximum + block_, data};
  }
  Partial partial_of(int64_t block, int64_t chunk) const {
    return partial_at(partials_ + (block * chunks_ + chunk) * partial_size());
  }

  int64_t first_row(int64_t block) const { return block % blocks_ * block_; }
  int64_t rows_of(int64_t block) const { return std::min(block_, rows_ - first_row(block)); }

  // Calls f(rows, their place in the block) on each run.
  template <class F>
  void each_run(int64_t block, F f) const {
    const int64_t map = block / blocks_, begin = first_row(block), end = begin + rows_of(block);
    for (int64_t row = begin; row < end;) {
      Rows rows{map / heads_, map % heads_ * fold_ + row / p_.queries, row % p_.queries, 0};
      rows.count = std::min(p_.queries - rows.first, end - row);
      f(rows, row - begin);
      row += rows.count;
    }
  }

  const char* row_at(const AttentionOperand& operand, int64_t batch, int64_t head, int64_t row) const {
    return static_cast<const char*>(operand.data) +
           (batch * operand.batch_stride + head * operand.head_stride + row * operand.row_stride) * item_;
  }

  // What one task works with.
  struct Task {
    int64_t block, rows;
    const int64_t* pages;     // of the sequence, where there are pages
    const char *key, *value;  // row 0 of the head, of the first page
    float *query, *scores, *panel, *wide;
    int64_t *position, *visible;  // by row: its place in the sequence, the keys of the present block that it sees
    Partial result;
  };

  void attend(int64_t block, int64_t chunk) const {
    const int64_t map = block / blocks_, key_head = map % heads_ * fold_ / p_.group;
    const int64_t query = block_ * p_.size, scores = block_ * key_block_, panel = p_.size * gemm_.panel,
                  wide = key_block_ * value_stride_, numbers = 2 * block_;
    // Each part begins at a whole vector.
    const int64_t size = query + scores + panel + wide + 2 * numbers + partial_size() + 6 * kPadding;
    float* scratch = static_cast<float*>(thread_scratch().work.reserve(4 * size));
    const auto take = [&](int64_t count) { return std::exchange(scratch, scratch + round_up(count, kPadding)); };
    const int64_t batch = map / heads_, first_page = is_paged() ? 0 : batch;
    Task t{.block = block,
           .rows = rows_of(block),
           .pages = is_paged() ? p_.pages.table + batch * p_.pages.table_stride : nullptr,
           .key = row_at(p_.key, first_page, key_head, 0),
           .value = row_at(p_.value, first_page, key_head, 0),
           .query = take(query),
           .scores = take(scores),
           .panel = take(panel),
           .wide = take(wide),
           .position = reinterpret_cast<int64_t*>(take(numbers)),
           .visible = reinterpret_cast<int64_t*>(take(numbers)),
           .result = chunks_ > 1 ? partial_of(block, chunk) : partial_at(scratch)};
    std::fill_n(t.result.maximum, t.rows, kNever);
    std::fill_n(t.result.sum, t.rows, 0.0f);
    std::fill_n(t.result.values, t.rows * value_stride_, 0.0f);
    int64_t end = std::min(p_.keys, (chunk + 1) * chunk_), seen = 0, first_seen = p_.keys;
    each_run(block, [&](const Rows& rows, int64_t at) {
      gemm_.load(row_at(p_.query, rows.batch, rows.head, rows.first), storage_, p_.query.row_stride, 1, rows.count,
                 p_.size, t.query + at * p_.size, p_.size);
      for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t position = position_of(rows.batch, rows.first + i);
        t.position[at + i] = position;
        seen = std::max(seen, position + 1);
        if (position >= 0) first_seen = std::min(first_seen, first_key(position));
      }
    });
    if (sees_the_past()) end = std::min(end, seen);
    for (int64_t key = chunk * chunk_; key < end; key += key_block_)
      if (key + key_block_ > first_seen || !is_paged()) visit(t, key, std::min(key_block_, end - key));
    if (chunks_ == 1) finish(block, t.result);
  }

  bool sees_the_past() const { return p_.causal || is_paged(); }
  // The place of a query in its sequence; -1 where there is none.
  int64_t position_of(int64_t batch, int64_t query) const {
    if (!is_paged()) return query;
    const int64_t position = p_.pages.starts[batch] + query;
    return position < p_.pages.lengths[batch] ? position : -1;
  }
  // That a query sees, of those in front of it.
  int64_t first_key(int64_t position) const {
    return p_.pages.window > 0 ? std::max<int64_t>(0, position + 1 - p_.pages.window) : 0;
  }

  // Calls f(row of keys, row of values, place in the block, count) on each run of keys that lie side by side.
  template <class F>
  void each_page(const Task& t, int64_t key, int64_t keys, F f) const {
    const int64_t key_bytes = p_.key.row_stride * item_, value_bytes = p_.value.row_stride * item_;
    if (!is_paged()) return f(t.key + key * key_bytes, t.value + key * value_bytes, 0, keys);
    const int64_t size = p_.pages.size;
    for (int64_t at = 0, count; at < keys; at += count) {
      const int64_t page = t.pages[(key + at) / size], row = (key + at) % size;
      count = std::min(size - row, keys - at);
      f(t.key + page * p_.key.batch_stride * item_ + row * key_bytes,
        t.value + page * p_.value.batch_stride * item_ + row * value_bytes, at, count);
    }
  }

  // One block of keys.
  void visit(const Task& t, int64_t key, int64_t keys) const {
    for (int64_t r = 0; r < t.rows; ++r)
      t.visible[r] = sees_the_past() ? std::clamp<int64_t>(t.position[r] + 1 - key, 0, keys) : keys;
    if (p_.mask.type == AttentionMaskType::kBool) {
      // Most of a static cache lies behind the last position: its keys are not read.
      hide_tails(t, key);
      keys = most_visible(t, 0, t.rows);
      if (keys == 0) return;
    }
    score(t, key, keys);
    if (p_.mask.type != AttentionMaskType::kNone) mask(t, key);
    if (is_paged() && p_.pages.window > 0)
      for (int64_t r = 0; r < t.rows; ++r) {
        const int64_t hidden = std::clamp<int64_t>(first_key(t.position[r]) - key, 0, t.visible[r]);
        std::fill_n(t.scores + r * key_block_, hidden, kNever);
      }
    core_.softmax({t.scores, key_block_, t.rows, keys, t.visible, t.result.maximum, t.result.sum, t.result.values,
                   value_stride_, p_.value_size});
    if (p_.dropout.is_on()) drop(t, key);
    add_values(t, key, keys);
  }

  // The sums know nothing of it.
  void drop(const Task& t, int64_t key) const {
    each_run(t.block, [&](const Rows& rows, int64_t at) {
      for (int64_t i = 0; i < rows.count; ++i)
        core_.drop(t.scores + (at + i) * key_block_, t.visible[at + i],
                   drop_args(p_, rows.batch, rows.head, rows.first + i, key));
    });
  }

  // Visible keys end with the last one that the mask shows.
  void hide_tails(const Task& t, int64_t key) const {
    const AttentionMask& m = p_.mask;
    each_run(t.block, [&](const Rows& rows, int64_t at) {
      for (int64_t i = 0; i < rows.count; ++i) {
        const bool* shown = static_cast<const bool*>(m.data) + rows.batch * m.batch_stride + rows.head * m.head_stride +
                            (rows.first + i) * m.row_stride + key * m.key_stride;
        int64_t& visible = t.visible[at + i];
        while (visible > 0 && !shown[(visible - 1) * m.key_stride]) --visible;
      }
    });
  }

  // The most keys that one of these rows sees.
  static int64_t most_visible(const Task& t, int64_t row, int64_t rows) {
    return *std::max_element(t.visible + row, t.visible + row + rows);
  }

  void score(const Task& t, int64_t key, int64_t keys) const {
    each_page(t, key, keys,
              [&](const char* data, const char*, int64_t at, int64_t count) { score(t, data, at, count); });
  }

  // Keys that lie side by side, from `at` of the block on.
  void score(const Task& t, const char* data, int64_t at, int64_t keys) const {
    if (t.rows <= gemm_detail::kMaxDotRows) {
      gemm_.dot[storage_][t.rows - 1]({.k = p_.size, .a = t.query, .a_row_stride = p_.size, .b = data,
                                       .b_col_stride = p_.key.row_stride, .c = t.scores + at,
                                       .c_row_stride = key_block_, .cols = keys, .alpha = p_.scale,
                                       .accumulate = false});
      return;
    }
    for (int64_t col = 0; col < keys; col += gemm_.panel) {
      const int64_t cols = std::min<int64_t>(gemm_.panel, keys - col);
      gemm_.pack_panel(data + col * p_.key.row_stride * item_, storage_, 1, p_.key.row_stride, p_.size, cols, t.panel);
      for (int64_t row = 0; row < t.rows; row += gemm_.max_rows) {
        const int64_t rows = std::min<int64_t>(gemm_.max_rows, t.rows - row);
        if (most_visible(t, row, rows) <= at + col) continue;
        gemm_.micro[gemm_detail::kNative][rows - 1][cols > gemm_.lanes](
            {.k = p_.size, .a = t.query + row * p_.size, .a_row_stride = p_.size, .a_k_stride = 1, .b = t.panel,
             .b_k_stride = gemm_.panel, .b_ahead = 0, .c = t.scores + row * key_block_ + at + col,
             .c_row_stride = key_block_, .cols = cols, .alpha = p_.scale, .accumulate = false});
      }
    }
  }

  void mask(const Task& t, int64_t key) const {
    const AttentionMask& m = p_.mask;
    each_run(t.block, [&](const Rows& rows, int64_t at) {
      for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t place = rows.batch * m.batch_stride + rows.head * m.head_stride +
                              (rows.first + i) * m.row_stride + key * m.key_stride;
        core_.mask(t.scores + (at + i) * key_block_, static_cast<const char*>(m.data) + place * mask_item_size(m.type),
                   m.type, m.key_stride, t.visible[at + i]);
      }
    });
  }

  void add_values(const Task& t, int64_t key, int64_t keys) const {
    const int64_t stride = p_.value.row_stride;
    // Many rows read the values many times: widen them once.
    if (storage_ != gemm_detail::kNative && t.rows > gemm_.max_rows_16) {
      each_page(t, key, keys, [&](const char*, const char* data, int64_t at, int64_t count) {
        gemm_.load(data, storage_, stride, 1, count, p_.value_size, t.wide + at * value_stride_, value_stride_);
      });
      return add_values(t, reinterpret_cast<const char*>(t.wide), gemm_detail::kNative, value_stride_, 0, keys);
    }
    each_page(t, key, keys, [&](const char*, const char* data, int64_t at, int64_t count) {
      add_values(t, data, storage_, stride, at, count);
    });
  }

  // Values that lie side by side, from `at` of the block on.
  void add_values(const Task& t, const char* data, Storage storage, int64_t stride, int64_t at, int64_t keys) const {
    const int64_t most_rows = storage == gemm_detail::kNative ? gemm_.max_rows : gemm_.max_rows_16;
    const int64_t item = storage == gemm_detail::kNative ? 4 : 2;
    for (int64_t row = 0; row < t.rows; row += most_rows) {
      const int64_t rows = std::min(most_rows, t.rows - row), depth = std::min(keys, most_visible(t, row, rows) - at);
      if (depth <= 0) continue;
      for (int64_t col = 0, cols; col < p_.value_size; col += cols) {
        const int width = widest(storage, rows, p_.value_size - col);
        cols = std::min<int64_t>(gemm_.lanes << width, p_.value_size - col);
        gemm_.micro[storage][rows - 1][width](
            {.k = depth, .a = t.scores + row * key_block_ + at, .a_row_stride = key_block_, .a_k_stride = 1,
             .b = data + col * item, .b_k_stride = stride, .b_ahead = 8 * stride,
             .c = t.result.values + row * value_stride_ + col, .c_row_stride = value_stride_, .cols = cols, .alpha = 1,
             .accumulate = true});
      }
    }
  }

  // The widest kernel, as the logarithm of its vectors, whose last vector is not beyond the columns: few rows leave
  // registers for many, and then every row of values is read in one go.
  int widest(Storage storage, int64_t rows, int64_t cols) const {
    int width = gemm_detail::kWidths - 1;
    while (width > 0 && (!gemm_.micro[storage][rows - 1][width] || ((1 << width) - 1) * gemm_.lanes >= cols)) --width;
    return width;
  }

  // Chunks in their order, whoever computed them.
  void merge(int64_t block) const {
    const Partial into = partial_of(block, 0);
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const Partial next = partial_of(block, chunk);
      for (int64_t r = 0; r < rows_of(block); ++r) {
        if (next.sum[r] == 0) continue;
        float* values = into.values + r * value_stride_;
        // As in the blocks: a maximum of minus infinity has a sum of zero behind it, or NaN.
        const float maximum = std::max(into.maximum[r], next.maximum[r]), base = maximum == kNever ? 0 : maximum;
        const float old_factor = std::exp(into.maximum[r] - base), new_factor = std::exp(next.maximum[r] - base);
        into.sum[r] = into.sum[r] * old_factor + next.sum[r] * new_factor;
        into.maximum[r] = maximum;
        core_.scale(values, p_.value_size, old_factor);
        core_.add_scaled(values, next.values + r * value_stride_, p_.value_size, new_factor);
      }
    }
    finish(block, into);
  }

  void finish(int64_t block, const Partial& result) const {
    const bool masked = p_.mask.type != AttentionMaskType::kNone || is_paged();
    for (int64_t r = 0; r < rows_of(block); ++r) {
      // A row with a visible key has a sum of at least one.
      const float factor = masked && result.sum[r] == 0 ? 0 : 1 / result.sum[r];
      core_.scale(result.values + r * value_stride_, p_.value_size, factor);
    }
    each_run(block, [&](const Rows& rows, int64_t at) {
      const int64_t row = (rows.batch * p_.heads + rows.head) * p_.queries + rows.first;
      gemm_.store(result.values + at * value_stride_, value_stride_, rows.count, p_.value_size,
                  static_cast<char*>(p_.out) + row * p_.value_size * item_, storage_, p_.value_size, 1);
      for (int64_t i = 0; p_.log_sums && i < rows.count; ++i) {
        const float sum = result.sum[at + i];
        p_.log_sums[row + i] = masked && sum == 0 ? -kNever : result.maximum[at + i] + std::log(sum);
      }
    });
  }

  const AttentionProblem& p_;
  const GemmCore<float>& gemm_;
  const AttentionCore& core_;
  const Storage storage_;
  const int64_t item_, value_stride_;
  int64_t fold_, rows_, heads_;  // query heads taken as more rows of one, the rows and the heads that makes
  int64_t block_, blocks_;       // rows of a task, blocks of a head
  int64_t chunk_, chunks_;       // keys of a task
  int64_t key_block_;
  float* partials_ = nullptr;    // [batch * heads * blocks, chunks], where there is more than one chunk
};

}  // namespace

void AttentionDropout::set_probability(double p) {
  // As f32 compares numbers of 24 digits with it.
  threshold = uint32_t(std::ceil(double(float(p)) * 0x1p24));
  factor = p == 1 ? 0 : float(1 / (1 - p));
}

void attention(const AttentionProblem& problem) {
  SINTER_INTERNAL_ASSERT(problem.type != GemmType::f64, "attention does not take f64");
  check(problem.isa == best_cpu_isa() || cpu_supports(problem.isa),
        "attention: this machine lacks the instruction set asked for");
  Attention(problem).run();
}

}  // namespace sinter::runtime
