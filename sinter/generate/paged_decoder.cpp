#include "sinter/generate/paged_decoder.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/warmup.h"
#include "sinter/engine/device/late_read.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

constexpr int64_t kDefaultLength = 2048;

int64_t next_of(const std::vector<int64_t>& sizes, int64_t least) {
  return *std::lower_bound(sizes.begin(), sizes.end(), least);
}

void sort_sizes(std::vector<int64_t>& sizes, const char* what) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  check(sizes.front() > 0, "PagedDecoder: {} of {}", what, sizes.front());
}

}  // namespace

struct PagedDecoder::Inputs {
  Tensor ids, positions, wanted, table, counts;
  SINTER_FIELDS(ids, positions, wanted, table, counts)
};

struct PagedDecoder::Programs {
  using Step = std::function<Tensor(const Inputs&, const models::KvCache&)>;
  using Pick = std::function<Tensor(const Tensor&, const RowsSampling&)>;
  using Likeliest = std::function<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&)>;

  Programs(const std::shared_ptr<models::CausalLM>& model, const PagedOptions& options) {
    auto forward = [model](const Inputs& in, models::KvCache cache) {
      cache.table = in.table, cache.counts = in.counts;
      return model->forward(in.ids, in.positions, {}, &cache, in.wanted).squeeze(1);
    };
    const int64_t most = std::min(kMostLogprobs, model->config().vocab_size);
    auto likeliest = [most](const Tensor& logits, const Tensor& chosen) {
      Tensor all = logits.to(kFloat32).log_softmax(-1);
      auto [top, ids] = topk(all, most, -1);
      return std::make_tuple(all.gather(-1, chosen.unsqueeze(-1)).squeeze(-1), top, ids);
    };
    auto picking = [](Picking kind) {
      return [kind](const Tensor& logits, const RowsSampling& rows) { return sample_rows(logits, kind, rows); };
    };
    if (options.eager) {
      step = forward, logprobs = likeliest;
      for (size_t kind = 0; kind < std::size(pick); ++kind) pick[kind] = picking(Picking(kind));
      return;
    }
    // Sizes are those of the lists: worth a program each.
    CompileOptions how{.mode = options.mode, .fullgraph = true, .dynamic = Dynamic::kFalse, .options = options.options};
    how.options.try_emplace("recompile_limit", int64_t(256));
    auto named = [&](const std::string& name, bool reads_the_model) {
      how.name = name;
      how.fingerprint = {};
      if (reads_the_model) how.fingerprint = [model, name] { return model->fingerprint(name); };
      return how;
    };
    auto keep = [&](auto compiled) {
      functions.push_back(&compiled.function());
      return compiled;
    };
    auto compiled_step = keep(compile(forward, named("step over pages", true)));
    step = compiled_step;
    prepare = [compiled_step](const Inputs& in, const models::KvCache& cache, capture::Warmup& warmup) {
      capture::prepare_call<Inputs, models::KvCache>(compiled_step.function(), *compiled_step.target(), warmup, in,
                                                     cache);
    };
    for (size_t kind = 0; kind < std::size(pick); ++kind)
      pick[kind] = keep(compile(picking(Picking(kind)), named(format("sampling {}", kind), false)));
    logprobs = keep(compile(likeliest, named("logprobs", false)));
  }

  Step step;
  std::function<void(const Inputs&, const models::KvCache&, capture::Warmup&)> prepare;
  Pick pick[3];
  Likeliest logprobs;
  std::vector<capture::Function*> functions;  // owned by the above
};

PagedDecoder::PagedDecoder(std::shared_ptr<models::CausalLM> model, PagedOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  check(bool(model_), "PagedDecoder: no model");
  const int64_t most = model_->config().max_positions;
  int64_t& length = options_.max_length;
  if (length == 0) length = most > 0 ? std::min(most, kDefaultLength) : kDefaultLength;
  check(length > 0 && (most <= 0 || length <= most), "PagedDecoder: sequences of {} positions; the model has {}",
        length, most);
  check(options_.page > 0, "PagedDecoder: pages of {} positions", options_.page);
  if (options_.rows.empty()) options_.rows = {1, 2, 4, 8, 16, 32};
  if (options_.chunks.empty()) options_.chunks = {32, 64, 128, 256, 512};
  sort_sizes(options_.rows, "rows");
  sort_sizes(options_.chunks, "chunks");
  // A longer chunk than a sequence is never wanted.
  while (options_.chunks.size() > 1 && options_.chunks[options_.chunks.size() - 2] >= length)
    options_.chunks.pop_back();
  table_width_ = (length + options_.page - 1) / options_.page;
  if (options_.pages == 0) options_.pages = largest_rows() * table_width_;
  check(options_.pages >= table_width_, "PagedDecoder: {} pages of {} positions do not hold one sequence of {}",
        options_.pages, options_.page, length);
  NoGradGuard no_grad;
  cache_ = model_->make_pages(options_.pages + 1, options_.page);
  programs_ = std::make_unique<Programs>(model_, options_);
}

PagedDecoder::~PagedDecoder() = default;

PagedDecoder::Inputs PagedDecoder::inputs(std::span<const PagedRow> rows, int64_t count, int64_t tokens) const {
  const Device device = cache_.keys[0].device();
  std::vector<int64_t> ids(size_t(count * tokens), 0), positions(size_t(count * tokens), 0), wanted(size_t(count), 0),
      table(size_t(count * table_width_), 0), counts(size_t(count), 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    const PagedRow& row = rows[r];
    const int64_t own = int64_t(row.ids.size());
    SINTER_INTERNAL_ASSERT(own >= 1 && own <= tokens && row.start + own <= int64_t(row.pages.size()) * options_.page,
                           "a row has pages for its tokens");
    std::copy(row.ids.begin(), row.ids.end(), ids.begin() + int64_t(r) * tokens);
    std::copy(row.pages.begin(), row.pages.end(), table.begin() + int64_t(r) * table_width_);
    // Padding stands where the last token does; nobody looks at it.
    for (int64_t t = 0; t < tokens; ++t) positions[r * size_t(tokens) + size_t(t)] = row.start + std::min(t, own - 1);
    wanted[r] = own - 1;
    counts[r] = own;
  }
  Inputs in;
  in.ids = tensor(ids).view({count, tokens}).to(device);
  in.positions = tensor(positions).view({count, tokens}).to(device);
  in.wanted = tensor(wanted).to(device);
  in.table = tensor(table).view({count, table_width_}).to(device);
  in.counts = tensor(counts).to(device);
  return in;
}

Tensor PagedDecoder::run(const Inputs& inputs) {
  NoGradGuard no_grad;
  return programs_->step(inputs, cache_);
}

Tensor PagedDecoder::prefill(const PagedRow& row) {
  return run(inputs({&row, 1}, 1, next_of(options_.chunks, int64_t(row.ids.size()))));
}

Tensor PagedDecoder::decode(std::span<const PagedRow> rows) {
  return run(inputs(rows, next_of(options_.rows, int64_t(rows.size())), 1));
}

std::vector<int64_t> PagedDecoder::sample(const Tensor& logits, std::span<const RowSampling* const> rows) {
  NoGradGuard no_grad;
  const int64_t count = logits.size(0).to_int();
  std::vector<int64_t> out(rows.size(), 0);
  for (size_t kind = 0; kind < std::size(programs_->pick); ++kind) {
    std::vector<const RowSampling*> own(size_t(count), nullptr);
    bool any = false;
    for (size_t r = 0; r < rows.size(); ++r)
      if (rows[r] && rows[r]->picking() == Picking(kind)) own[r] = rows[r], any = true;
    if (!any) continue;
    RowsSampling settings = RowsSampling::of(own, Picking(kind), vocab());
    for (Tensor* t : {&settings.numbers, &settings.draws, &settings.bias, &settings.seen}) *t = t->to(logits.device());
    std::vector<int64_t> tokens = LateRead(programs_->pick[kind](logits, settings)).wait();
    for (size_t r = 0; r < rows.size(); ++r)
      if (own[r]) out[r] = tokens[r];
  }
  return out;
}

std::vector<PagedDecoder::Logprobs> PagedDecoder::logprobs(const Tensor& logits, std::span<const int64_t> chosen) {
  NoGradGuard no_grad;
  std::vector<int64_t> ids(chosen.begin(), chosen.end());
  ids.resize(size_t(logits.size(0).to_int()), 0);
  auto [own, top, top_ids] = programs_->logprobs(logits, tensor(ids).to(logits.device()));
  const std::vector<float> own_values = own.to(Device()).to_vector<float>(),
                           values = top.to(Device()).to_vector<float>();
  const std::vector<int64_t> tokens = top_ids.to(Device()).to_vector<int64_t>();
  const size_t most = values.size() / ids.size();
  std::vector<Logprobs> out(chosen.size());
  for (size_t r = 0; r < out.size(); ++r) {
    out[r].chosen = own_values[r];
    for (size_t i = r * most; i < (r + 1) * most; ++i) out[r].top.push_back({tokens[i], values[i]});
  }
  return out;
}

void PagedDecoder::warmup() {
  NoGradGuard no_grad;
  std::vector<Inputs> steps;
  for (int64_t chunk : options_.chunks) steps.push_back(inputs({}, 1, chunk));
  for (int64_t rows : options_.rows) steps.push_back(inputs({}, rows, 1));
  if (!options_.eager) {
    capture::Warmup warmup("the model");
    for (auto& in : steps) programs_->prepare(in, cache_, warmup);
    warmup.run();
  }
  // A device that records launches does so in the second call.
  const size_t calls = options_.mode == Mode::kReduceOverhead ? 2 : 1, count = steps.size();
  for (size_t i = 0; i < calls * count; ++i) {
    Tensor logits = run(steps[i % count]);
    const size_t rows = size_t(logits.size(0).to_int());
    std::vector<RowSampling> settings(3);
    settings[1].options.temperature = settings[2].options.temperature = 1;
    settings[2].options.top_k = 1;
    for (auto& row : settings) sample(logits, std::vector<const RowSampling*>(rows, &row));
    if (options_.logprobs) logprobs(logits, std::vector<int64_t>(rows, 0));
  }
}

int64_t PagedDecoder::programs() const {
  int64_t count = 0;
  for (auto* function : programs_->functions) count += int64_t(function->entries().size());
  return count;
}

int64_t PagedDecoder::cache_bytes() const {
  int64_t bytes = 0;
  for (auto* list : {&cache_.keys, &cache_.values})
    for (auto& t : *list) bytes += t.numel() * item_size(t.dtype());
  return bytes;
}

}  // namespace sinter
