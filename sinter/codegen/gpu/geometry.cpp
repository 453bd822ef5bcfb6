#include "sinter/codegen/gpu/geometry.h"

#include <algorithm>
#include <bit>

namespace sinter::codegen {

namespace {

constexpr int64_t kBlockThreads = 256;
constexpr int64_t kSmallBlock = 64;     // whole warps of any width
constexpr int64_t kBlocksEach = 64;     // blocks a multiprocessor at most: beyond, threads take several steps
constexpr int64_t kStepsPerThread = 4;  // of a row, when there are rows enough
constexpr int64_t kColumnSteps = 8;     // of columns in vectors, when there are columns enough
constexpr int64_t kFullThreads = 1024;  // threads that keep a multiprocessor's memory busy

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

unsigned blocks_for(int64_t wanted, int multiprocessors) {
  return unsigned(std::clamp<int64_t>(wanted, 1, multiprocessors * kBlocksEach));
}

}  // namespace

GpuGeometry gpu_geometry(const GpuLaunch& kernel, int64_t range, int64_t work, int multiprocessors) {
  GpuGeometry out;
  const int most = kernel.most, warp = kernel.warp;
  const int64_t full = multiprocessors * kFullThreads;
  range = std::max<int64_t>(range, 1);
  work = std::max<int64_t>(work, 1);
  switch (kernel.spread) {
    case Spread::kElements:
    case Spread::kPoints: {
      int64_t steps = ceil_div(range, kernel.spread == Spread::kElements ? kernel.lanes : 1);
      int64_t threads = std::min<int64_t>(kBlockThreads, most);
      // Few steps: small blocks, so that more multiprocessors take part.
      while (threads > kSmallBlock && steps < threads * multiprocessors) threads /= 2;
      out.threads[0] = unsigned(threads);
      out.blocks = blocks_for(ceil_div(steps, threads), multiprocessors);
      return out;
    }
    case Spread::kRows: {
      const int64_t steps = ceil_div(work, kernel.lanes);
      int64_t members = 1;
      // Where a row does not lie along memory, several threads share it only if there are too few rows.
      if (kernel.along) members = int64_t(std::bit_ceil(uint64_t(ceil_div(steps, kStepsPerThread))));
      members = std::min<int64_t>(members, most);
      // Steps side by side are one access of the memory: as many as a warp takes.
      if (kernel.along && steps >= 8)
        members = std::max<int64_t>(members, std::min<int64_t>(warp, int64_t(std::bit_floor(uint64_t(steps)))));
      while (members * 2 <= std::min<int64_t>(steps, most) && range * members < full) members *= 2;
      int64_t rows = std::max<int64_t>(1, std::min<int64_t>(kBlockThreads, most) / members);
      while (rows > 1 && rows * members > warp && ceil_div(range, rows) < multiprocessors) rows /= 2;
      // A warp is always whole.
      while (rows * members < warp) rows *= 2;
      out.threads[0] = unsigned(members);
      out.threads[1] = unsigned(rows);
      out.blocks = blocks_for(ceil_div(range, rows), multiprocessors);
      return out;
    }
    case Spread::kColumns: {
      // Vectors keep memory as busy with half the threads, and cost more to join: a thread should take some steps.
      const bool vectors = kernel.lanes > 1;
      const int64_t wanted = vectors ? full / 2 : full;
      int64_t members = vectors ? std::clamp<int64_t>(int64_t(std::bit_floor(uint64_t(work))) / kColumnSteps, 1, 8) : 8;
      while (members > 1 && members > work) members /= 2;
      while (warp * members * 2 <= std::min<int64_t>(work * warp, most) && range * members < wanted) members *= 2;
      members = std::min<int64_t>(members, most / warp);
      out.threads[0] = unsigned(warp);
      out.threads[1] = unsigned(members);
      out.blocks = blocks_for(ceil_div(range, warp), multiprocessors);
      return out;
    }
    case Spread::kTiles: break;
  }
  out.threads[0] = kSquare;
  out.threads[1] = kSquareRows;
  out.blocks = blocks_for(range * work, multiprocessors);
  return out;
}

GpuGeometry gpu_sibling_geometry(const GpuLaunch& kernel, int64_t range, int64_t work, int multiprocessors) {
  GpuLaunch beside = kernel;
  beside.most = kSiblingThreads;
  GpuGeometry out = gpu_geometry(beside, range, work, multiprocessors);
  if (kernel.spread == Spread::kElements || kernel.spread == Spread::kPoints) {
    int64_t steps = ceil_div(std::max<int64_t>(range, 1), kernel.spread == Spread::kElements ? kernel.lanes : 1);
    out.threads[0] = kSiblingThreads;
    out.blocks = blocks_for(ceil_div(steps, kSiblingThreads), multiprocessors);
    return out;
  }
  int64_t rows = kernel.spread == Spread::kColumns ? out.threads[0] : kSiblingThreads / out.threads[0];
  out.threads[1] = kSiblingThreads / out.threads[0];
  out.blocks = blocks_for(ceil_div(std::max<int64_t>(range, 1), rows), multiprocessors);
  return out;
}

}  // namespace sinter::codegen
