// What eager execution costs: the overhead of a call, the first use of an op, the bandwidth of memory-bound ops and the
// speed of matrix products, each beside the machine's own ceiling (and oneDNN) measured in the same rounds.
// Usage: eager [--json] [--quick] [--threads N] [overhead|first-use|bandwidth|matmul ...]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "bench/support/ceilings.h"
#include "bench/support/child.h"
#include "bench/support/onednn.h"
#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/tensor/tensor.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

// An op called on operands it holds.
using Body = std::function<Tensor()>;

struct Options {
  bool json = false, quick = false;
  int threads = 0;
  std::set<std::string> sections;
};

// --- overhead

void overhead(Report& report, bool quick) {
  report.section("overhead", "Overhead of a call on tensors of one element, once cached",
                 {{"op", "op"},
                  {"best_ns", "best ns"},
                  {"median_ns", "median ns"},
                  {"recorded_best_ns", "recorded by autograd: best ns"},
                  {"recorded_median_ns", "median ns"}});
  Tensor plain = ones({1}), other = ones({1}), matrix = ones({2, 2});
  Tensor leaf = ones({1}).requires_grad_(), leaf_matrix = ones({2, 2}).requires_grad_();
  Tensor target = zeros({1});
  Rounds rounds{.count = quick ? 7 : 21, .seconds = quick ? 0.003 : 0.01};
  auto measure = [&](const char* name, const Work& unrecorded, const Work& recorded) {
    std::vector<Work> works{unrecorded};
    if (recorded) works.push_back(recorded);
    auto t = alternate(works, rounds);
    Json row{{"op", name}, {"best_ns", t[0].best * 1e9}, {"median_ns", t[0].median * 1e9}};
    double deviation = t[0].deviation;
    if (recorded) {
      row["recorded_best_ns"] = t[1].best * 1e9;
      row["recorded_median_ns"] = t[1].median * 1e9;
      deviation = std::max(deviation, t[1].deviation);
    }
    row["deviation"] = deviation;
    report.row(row);
  };
  measure("add, two tensors", repeat([=] { add(plain, other); }), repeat([=] { add(leaf, other); }));
  measure("add, tensor and number", repeat([=] { add(plain, 1.5); }), repeat([=] { add(leaf, 1.5); }));
  measure("add_ in place", repeat([=] { target.add_(other); }), {});
  measure("detach, then add_ in place", repeat([=] { target.detach().add_(other); }),
          repeat([=] { target.detach().add_(leaf); }));
  measure("slice, a view", repeat([=] { slice(plain, 0, 0, 1); }), repeat([=] { slice(leaf, 0, 0, 1); }));
  measure("sum", repeat([=] { sum(plain); }), repeat([=] { sum(leaf); }));
  measure("exp", repeat([=] { sinter::exp(plain); }), repeat([=] { sinter::exp(leaf); }));
  measure("matmul, 2x2", repeat([=] { matmul(matrix, matrix); }), repeat([=] { matmul(leaf_matrix, matrix); }));
  report.note("A recorded call includes making and freeing its node of the tape.");
}

// --- first use

struct FirstUse {
  std::string op;
  double ms;
  int64_t kernels;  // files that appeared in the cache
};

int64_t files_in(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  return error ? 0 : std::distance(files, std::filesystem::directory_iterator());
}

// The child's part: times the first call of each op in this process, on the cache that the environment names.
int print_first_uses() {
  const std::string directory = std::getenv("SINTER_CACHE_DIR");
  Tensor x = from_data(std::vector<float>(64 * 64, 0.5f), {64, 64}),
         weight = from_data(std::vector<float>(64, 1), {64});
  const std::pair<const char*, Body> ops[] = {
      {"add (and loading the compiler)", [=] { return add(x, x); }},
      {"exp", [=] { return sinter::exp(x); }},
      {"tanh", [=] { return sinter::tanh(x); }},
      {"mul by a number", [=] { return mul(x, 2.0); }},
      {"amax of rows", [=] { return amax(x, {1}, true); }},
      {"sub, broadcast", [=] { return sub(x, slice(x, 1, 0, 1)); }},
      {"sum of rows", [=] { return sum(x, {1}, true); }},
      {"sum of columns", [=] { return sum(x, {0}); }},
      {"div, broadcast", [=] { return div(x, slice(x, 1, 0, 1)); }},
      {"cast to bf16", [=] { return to(x, kBFloat16); }},
      {"where", [=] { return where(gt(x, 0.0), x, 0.0); }},
      {"gelu", [=] { return gelu(x); }},
      {"softmax", [=] { return softmax(x, 1); }},
      {"layer_norm", [=] { return layer_norm(x, {64}, weight, weight); }},
  };
  for (auto& [name, body] : ops) {
    int64_t files = files_in(directory);
    double ms = timed(body) * 1e3;
    std::printf("%.4f %lld %s\n", ms, static_cast<long long>(files_in(directory) - files), name);
  }
  return 0;
}

// What that child tells.
std::vector<FirstUse> first_uses(const OwnDirectory& cache) {
  std::vector<FirstUse> uses;
  std::istringstream lines(output_of_self("--print-first-uses", cache));
  for (FirstUse use; lines >> use.ms >> use.kernels && std::getline(lines >> std::ws, use.op);) uses.push_back(use);
  return uses;
}

double median(std::vector<double> values) { return values.empty() ? 0 : summarize(std::move(values)).median; }

void first_use(Report& report, bool quick) {
  report.section("first_use", "First use of an op in a new process: empty cache, then the cache on disk",
                 {{"op", "op"},
                  {"kernels", "new kernels"},
                  {"cold_ms", "cold ms", 1},
                  {"cold_ms_per_kernel", "cold ms a kernel", 1},
                  {"disk_ms", "from disk ms", 2},
                  {"disk_ms_per_kernel", "from disk ms a kernel", 2}});
  std::vector<std::vector<double>> cold, disk;
  std::vector<FirstUse> names;
  for (int round = 0; round < (quick ? 1 : 5); ++round) {
    OwnDirectory cache;
    auto collect = [&](std::vector<std::vector<double>>& times) {
      auto uses = first_uses(cache);
      times.resize(uses.size());
      for (size_t i = 0; i < uses.size(); ++i) times[i].push_back(uses[i].ms);
      return uses;
    };
    auto uses = collect(cold);
    if (names.empty()) names = uses;
    for (int again = 0; again < 3; ++again) collect(disk);
  }
  std::vector<double> cold_each, disk_each;
  for (size_t i = 0; i < names.size(); ++i) {
    Json row{{"op", names[i].op}, {"kernels", names[i].kernels}};
    row["cold_ms"] = median(cold[i]);
    row["disk_ms"] = median(disk[i]);
    if (names[i].kernels > 0) {
      double cold_one = median(cold[i]) / double(names[i].kernels),
             disk_one = median(disk[i]) / double(names[i].kernels);
      row["cold_ms_per_kernel"] = cold_one;
      row["disk_ms_per_kernel"] = disk_one;
      if (i > 0) cold_each.push_back(cold_one), disk_each.push_back(disk_one);
    }
    report.row(row);
  }
  if (cold_each.empty()) return report.note("No kernel reached the disk cache: nothing can be said of a kernel alone.");
  report.note(format("A new kernel after the first: cold {} ms (aim < 60), from disk {} ms (aim < 2), the median op.",
                     fixed(median(cold_each), 1), fixed(median(disk_each), 2)));
  report.note("Cold: the compiler's own files are in the system's file cache, as after any earlier use.");
  report.row({{"op", "median of the ops after the first"},
              {"cold_ms_per_kernel", median(cold_each)},
              {"disk_ms_per_kernel", median(disk_each)}});
}

// --- bandwidth

double rate(double work, double time) { return work / time * 1e-9; }

struct MemoryOp {
  const char* name;
  Traffic traffic;  // the ceiling that reads and writes bytes in the nearest proportion
  double bytes;     // each operand once, the result once
  Body body;
};

// An op's best round is held against the best round of its ceiling anywhere in the run, so that a disturbed ceiling
// flatters nobody; its median against the median of the ceiling in the rounds between.
void bandwidth_at(Report& report, const char* place, int64_t array_bytes, const Rounds& rounds) {
  const int64_t columns = array_bytes >= (1 << 24) ? 4096 : 512, rows = array_bytes / 4 / columns;
  const double array = double(rows * columns * 4), row_bytes = double(rows * 4), column_bytes = double(columns * 4);
  Tensor x = randn({rows, columns}), y = randn({rows, columns}), row = randn({columns}), mask = gt(x, 0.0);
  StreamCeiling stream(x, y);
  Tensor half_x = randn({2 * rows, columns}, kBFloat16), half_y = randn({2 * rows, columns}, kBFloat16);
  const MemoryOp ops[] = {
      {"add", Traffic::kAdd, 3 * array, [&] { return add(x, y); }},
      {"mul by a number", Traffic::kCopy, 2 * array, [&] { return mul(x, 1.5); }},
      {"exp", Traffic::kCopy, 2 * array, [&] { return sinter::exp(x); }},
      {"tanh", Traffic::kCopy, 2 * array, [&] { return sinter::tanh(x); }},
      {"gelu", Traffic::kCopy, 2 * array, [&] { return gelu(x); }},
      {"where", Traffic::kAdd, 3.25 * array, [&] { return where(mask, x, y); }},
      {"add, bf16", Traffic::kAdd, 3 * array, [&] { return add(half_x, half_y); }},
      {"cast f32 to bf16", Traffic::kAdd, 1.5 * array, [&] { return to(x, kBFloat16); }},
      {"sum of rows", Traffic::kRead, array + row_bytes, [&] { return sum(x, {1}); }},
      {"sum of columns", Traffic::kRead, array + column_bytes, [&] { return sum(x, {0}); }},
      {"sum of all", Traffic::kRead, array, [&] { return sum(x); }},
      {"amax of rows", Traffic::kRead, array + row_bytes, [&] { return amax(x, {1}); }},
      {"sum of rows, bf16", Traffic::kRead, array + row_bytes, [&] { return sum(half_x, {1}); }},
      {"argmax of rows", Traffic::kRead, array + 2 * row_bytes, [&] { return argmax(x, 1); }},
      {"copy of the transpose", Traffic::kCopy, 2 * array, [&] { return transpose(x, 0, 1).contiguous(); }},
      {"add a row", Traffic::kCopy, 2 * array + column_bytes, [&] { return add(x, row); }},
  };
  std::vector<std::pair<const MemoryOp*, std::vector<Timing>>> results;
  std::array<std::array<double, 2>, 3> best_times;  // [traffic][streaming]
  best_times.fill({INFINITY, INFINITY});
  for (const MemoryOp& op : ops) {
    std::vector<Work> works{repeat(op.body), stream.work(op.traffic, false)};
    if (op.traffic != Traffic::kRead && StreamCeiling::can_stream()) works.push_back(stream.work(op.traffic, true));
    auto t = alternate(works, rounds);
    auto& best = best_times[size_t(op.traffic)];
    for (size_t i = 1; i < t.size(); ++i) best[i - 1] = std::min(best[i - 1], t[i].best);
    results.emplace_back(&op, t);
  }
  for (auto& [measured, t] : results) {
    const MemoryOp& op = *measured;
    const auto& best = best_times[size_t(op.traffic)];
    const bool streaming = best[1] < best[0];
    const Timing& ceiling = t[streaming ? 2 : 1];
    const double moved = double(stream.bytes(op.traffic)), ceiling_best = rate(moved, best[streaming]);
    report.row({{"op", op.name},
                {"place", place},
                {"array_mib", array / double(1 << 20)},
                {"best_gbs", rate(op.bytes, t[0].best)},
                {"median_gbs", rate(op.bytes, t[0].median)},
                {"ceiling", format("{}, {}", to_string(op.traffic),
                                   op.traffic == Traffic::kRead ? "no stores"
                                   : streaming                  ? "streaming"
                                                                : "ordinary")},
                {"ceiling_best_gbs", ceiling_best},
                {"ceiling_median_gbs", rate(moved, ceiling.median)},
                {"best_fraction", rate(op.bytes, t[0].best) / ceiling_best},
                {"median_fraction", rate(op.bytes, t[0].median) / rate(moved, ceiling.median)},
                {"deviation", std::max(t[0].deviation, ceiling.deviation)}});
  }
}

void bandwidth(Report& report, bool quick) {
  report.section("bandwidth", "Bandwidth beside STREAM-like loops on the same thread pool, in the same rounds",
                 {{"op", "op"},
                  {"place", "arrays in"},
                  {"array_mib", "MiB", 2},
                  {"best_gbs", "best GB/s", 1},
                  {"median_gbs", "median GB/s", 1},
                  {"ceiling", "ceiling: kind, stores"},
                  {"ceiling_best_gbs", "best GB/s", 1},
                  {"ceiling_median_gbs", "median GB/s", 1},
                  {"best_fraction", "best of best", 0, true},
                  {"median_fraction", "median of median", 0, true}});
  constexpr int64_t kMega = 1 << 20;
  const int64_t large = std::clamp((quick ? 2 : 4) * last_cache_bytes(), 64 * kMega, 256 * kMega);
  bandwidth_at(report, "memory", large, {.count = quick ? 3 : 9, .seconds = 0.001});
  bandwidth_at(report, "L2", l2_cache_bytes() / 8, {.count = quick ? 5 : 11, .seconds = quick ? 0.002 : 0.004});
  report.note("Bytes: each operand once, the result once. The ceiling is the better of ordinary and streaming stores.");
  report.note(
      "1r reads one array, 1r1w reads one and writes one, 2r1w reads two and writes one (a cast to half the width");
  report.note(
      "and a where read and write in about that proportion). Best of best: the ceiling's best in the whole run.");
}

// --- matrix products

// Times ours beside the FMA ceiling and the peers. The fraction of the ceiling is left to the end, when its best round
// is known.
Json product_row(Json row, double flops, const Body& body, const std::vector<Work>& peers, const Rounds& rounds) {
  std::vector<Work> works{repeat(body)};
  works.insert(works.end(), peers.begin(), peers.end());
  auto fma = fma_ceiling();
  if (fma) works.push_back(fma->work);
  auto t = alternate(works, rounds);
  row["best_us"] = t[0].best * 1e6;
  row["best_gflops"] = rate(flops, t[0].best);
  row["median_gflops"] = rate(flops, t[0].median);
  double deviation = t[0].deviation;
  if (fma) {
    row["ceiling_gflops"] = rate(fma->flops, t.back().best);
    deviation = std::max(deviation, t.back().deviation);
  }
  const char* keys[][2] = {{"onednn_best_ratio", "onednn_median_ratio"},
                           {"onednn_own_layouts_best_ratio", "onednn_own_layouts_median_ratio"}};
  for (size_t p = 0; p < peers.size(); ++p) {
    row[keys[p][0]] = t[1 + p].best / t[0].best;
    row[keys[p][1]] = t[1 + p].median / t[0].median;
    deviation = std::max(deviation, t[1 + p].deviation);
  }
  row["deviation"] = deviation;
  return row;
}

bool differ(const Tensor& a, const Tensor& b, double tolerance) {
  return !(amax(sinter::abs(sub(a, b))).item<double>() <= tolerance);
}

void matmul_rows(std::vector<Json>& table, bool quick, const Rounds& rounds) {
  std::vector<std::array<int64_t, 3>> sizes;
  for (int64_t n = 64; n <= (quick ? 1024 : 2048); n *= 2) sizes.push_back({n, n, n});
  sizes.push_back({1, 4096, 4096});
  sizes.push_back({8, 4096, 4096});
  for (DType dtype : {kFloat32, kBFloat16}) {
    for (auto [m, n, k] : sizes) {
      Tensor a = randn({m, k}, dtype), b = randn({k, n}, dtype), peer_result = zeros({m, n});
      Json row{{"op", "matmul"}, {"dtype", dtype == kFloat32 ? "f32" : "bf16"}, {"size", format("{}x{}x{}", m, n, k)}};
      std::vector<Work> peers;
      if (dtype == kFloat32 && have_onednn()) {
        const float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>();
        float* pc = peer_result.data_ptr<float>();
        peers.push_back(repeat([=, m = m, n = n, k = k] { onednn_sgemm(m, n, k, pa, pb, false, pc); }));
        peers[0](1);
        row["wrong"] = differ(matmul(a, b), peer_result, 1e-5 * double(k) + 1e-4);
      }
      const double flops = 2.0 * double(m) * double(n) * double(k);
      table.push_back(product_row(
          row, flops, [=] { return matmul(a, b); }, peers, rounds));
    }
  }
}

Json convolution_row(const Rounds& rounds) {
  constexpr ConvolutionShape kLayer{.n = 1, .c = 64, .h = 56, .w = 56, .filters = 64, .kernel = 3, .padding = 1};
  Tensor x = randn({1, 64, 56, 56}), weight = randn({64, 64, 3, 3}), peer_result = zeros({1, 64, 56, 56});
  Json row{{"op", "conv2d 3x3"}, {"dtype", "f32"}, {"size", "1x64x56x56, 64"}};
  std::vector<Work> peers;
  for (bool own_layouts : {false, true})
    if (auto work = onednn_convolution(kLayer, x.data_ptr<float>(), weight.data_ptr<float>(),
                                       peer_result.data_ptr<float>(), own_layouts))
      peers.push_back(*work);
  if (!peers.empty()) {
    peers[0](1);
    row["wrong"] = differ(conv2d(x, weight, {}, 1, 1), peer_result, 1e-2);
  }
  return product_row(
      row, 2.0 * 64 * 64 * 9 * 56 * 56, [=] { return conv2d(x, weight, {}, 1, 1); }, peers, rounds);
}

void products(Report& report, bool quick) {
  report.section("matmul", "Matrix products and a convolution beside the FMA ceiling and oneDNN, in the same rounds",
                 {{"op", "op"},
                  {"dtype", "dtype"},
                  {"size", "m x n x k"},
                  {"best_us", "best us", 1},
                  {"best_gflops", "best GFLOP/s", 1},
                  {"median_gflops", "median", 1},
                  {"ceiling_gflops", "f32 FMA ceiling", 1},
                  {"ceiling_fraction", "of ceiling", 0, true},
                  {"onednn_best_ratio", "x oneDNN, best", 2},
                  {"onednn_median_ratio", "median", 2},
                  {"onednn_own_layouts_best_ratio", "x oneDNN in its layouts", 2}});
  set_onednn_threads(num_threads());
  NoGradGuard no_grad;
  // Idle threads of oneDNN's runtime spin for a while; until they sleep they would take our cores.
  Rounds rounds{.count = quick ? 3 : 9, .seconds = quick ? 0.004 : 0.01, .settle = have_onednn() ? 0.02 : 0};
  std::vector<Json> table;
  matmul_rows(table, quick, rounds);
  table.push_back(convolution_row(rounds));
  double ceiling = 0;
  for (auto& row : table) ceiling = std::max(ceiling, row.value("ceiling_gflops", 0.0));
  for (auto& row : table) {
    if (ceiling > 0) row["ceiling_fraction"] = row["best_gflops"].get<double>() / ceiling;
    report.row(row);
  }
  report.note("Of ceiling: our best round against the ceiling's best in the whole run; bf16 too against that of f32.");
  if (!have_onednn()) return report.note("Built without oneDNN: no peer.");
  report.note(format("oneDNN {}: a ratio above 1 means that Sinter is faster.", onednn_version()));
  report.note("In its layouts: oneDNN's operands reordered beforehand, which is not timed.");
}

Options parse(int argc, char** argv) {
  Options options;
  const std::set<std::string> known{"overhead", "first-use", "bandwidth", "matmul"};
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--json")
      options.json = true;
    else if (text == "--quick")
      options.quick = true;
    else if (text == "--threads" && i + 1 < argc)
      options.threads = std::atoi(argv[++i]);
    else {
      check(known.count(text), "eager: '{}' is unknown; [--json] [--quick] [--threads N] {}", text,
            "[overhead|first-use|bandwidth|matmul ...]");
      options.sections.insert(text);
    }
  }
  if (options.sections.empty()) options.sections = known;
  return options;
}

// Other processes on the cores spoil everything measured with several threads, and libraries whose threads wait for
// each other by spinning most of all.
void tell_free_cores(Report& report, const std::string& when) {
  auto cores = measure_free_cores();
  if (!cores) return;
  report.fact(format("free_cores_{}", when), std::round(*cores * 100) / 100);
  if (*cores < 0.9 * num_threads())
    report.warning(
        format("{} threads get the work of {} cores done: other processes run, and ratios to a peer say nothing",
               num_threads(), fixed(*cores, 2)));
}

void run(const Options& options) {
  if (options.threads > 0) set_num_threads(options.threads);
  double start = seconds();
  Report report(options.json);
  report.fact("threads", num_threads());
  report.fact("target", runtime::host_target().name);
  tell_free_cores(report, "at_start");
  manual_seed(1);
  const std::pair<const char*, void (*)(Report&, bool)> sections[] = {
      {"overhead", overhead}, {"first-use", first_use}, {"bandwidth", bandwidth}, {"matmul", products}};
  for (auto& [name, section] : sections) {
    if (!options.sections.count(name)) continue;
    section(report, options.quick);
    tell_free_cores(report, format("after_{}", name));
  }
  report.finish(seconds() - start);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && std::strcmp(argv[1], "--print-first-uses") == 0) return print_first_uses();
  run(parse(argc, argv));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
