#pragma once
// Schedule: how a nest is run on a device, as data beside it. It is made of the nest and of a few facts, so it can be printed
// and tested alone; writers of text only write what nest and schedule say.
#include "sinter/tensor/target.h"
#include "sinter/loops/loop_nest.h"

namespace sinter {

enum class VectorMode : uint8_t {
  kScalar,  // one element at a time
  kMap,     // lanes along the last inner axis, elements apart
  kRows,    // the same of a nest that reduces: accumulators of a row side by side, joined at the end
  kColumns  // a reduction: lanes along the last row axis, each with a row of its own
};

// How the work is spread over a GPU; codegen/gpu/geometry.h turns it into blocks and threads.
enum class Spread : uint8_t {
  kElements,  // a thread takes `lanes` neighbours of the range at a time
  kPoints,    // a thread takes a point of the range at a time, all of its work
  kRows,      // neighbouring threads share a point of the range (a row)
  kColumns,   // neighbouring threads have neighbouring points; threads above each other share one
  kTiles      // a block of kSquare × kSquareRows takes a square of kSquare × kSquare elements at a time, and transposes what
              // does not lie along the last axis
};

// As wide as a line of memory has elements of four bytes, on GPUs with warps of any width, so that several squares fit into
// shared memory.
inline constexpr int kSquare = 32, kSquareRows = 8;

// What of a GPU's program the text is to be.
enum class KernelPart : uint8_t {
  kKernel,   // a kernel by itself
  kRows,     // rows of another kernel
  kElement,  // of a contraction's result: one element
  kRun       // or a run of neighbours
};

struct SweepSchedule {
  // Places of the lanes' axis at which some condition changes: vectors lie between two of them.
  std::vector<Dim> cuts = {};
  bool common_cuts = false;  // the same for all rows
  bool single_tail = false;  // what is left of a row goes one by one: lanes cannot stop a strided access short
  std::vector<size_t> pairs = {};  // stores that are one with the next: even and odd places of a result
  int unroll = 0;  // times; 0: as the compiler likes
  int run = 0;     // elements that a scalar reduction adds up before it joins them to the rest; 0: all
};

// Vectors of a row that stay in registers, because several sweeps load them.
struct HeldLoad {
  int operand;
  DType dtype;
  Dim offset;
  size_t by;  // the sweep that loads it first

  bool is(const Instr& instr) const {
    return instr.operand == operand && instr.dtype == dtype && instr.offset.same_as(offset);
  }
};

struct Schedule {
  VectorMode mode = VectorMode::kScalar;
  Dim vector_axis;  // its symbol
  // Loads of a map that lie side by side along another axis than the lanes': squares of both axes are loaded as they lie, and
  // transposed.
  std::vector<int> transposed;
  Axis transposed_axis;
  std::vector<SweepSchedule> sweeps;  // one each
  std::vector<Axis> range;  // the axes whose points are shared out
  bool over_inner = false;  // of a map without rows: that is the inner axis
  Dim work = 1;             // about how many elements a point of the range has (of kTiles: squares)

  // On a CPU.
  bool stream = false;    // a map's stores go past the caches: for results too large to stay in them. Needs aligned results
  int piece_vectors = 0;  // pieces of the range should be a multiple of so many vectors; 0: any

  // On a GPU.
  bool gpu = false;
  KernelPart part = KernelPart::kKernel;
  Spread spread = Spread::kElements;
  int lanes = 1;      // elements that a thread takes at a time
  bool wide = false;  // positions need 64 bits
  bool along = false;  // of kRows: memory runs along the row, so that several threads should share it even if there are many
  int warp = 32;      // threads that run in step
  int most = 512, bounds = 512;  // threads of a block: that it may be given, that it is compiled for
  int items = 0, vector_items = 0;  // of searches and scans: elements, and vectors, that a thread has under way at once
  int held_vectors = 0;  // of each of `held`
  std::vector<HeldLoad> held;
  DType memory = kFloat32;  // of the results that an epilogue reads

  Dim points() const;  // of the range
};

// What of a CPU and of the sizes at hand decides.
struct CpuFacts {
  bool stream = false;  // results are large, and aligned to 64 bytes
};

// The same of a GPU.
struct GpuFacts {
  Target target = gpu_target(32);
  bool lanes = true;  // vectors of neighbours where they fit; better without when there are few elements
  bool wide = false;  // some operand, or the range, reaches 2^30 elements
  // Of a map: an axis (counted as they are nested) along which operands lie that stride along the last one, although the
  // nest does not say so. Where a stride is known to be 1 the axis is found without.
  int transposed_along = -1;
  // Of rows with several sweeps: so many vectors of what more than one of them loads stay in a thread's registers; the rest
  // of a longer row is loaded again. gpu_geometry tells how many a thread gets.
  int held_vectors = 0;
  // Of rows with several inner axes: the last one is short, so that threads share all of them, an element each.
  bool short_rows = false;
  // Of rows that lie side by side in memory: there are enough of them for a thread to take several.
  bool column_lanes = false;
  KernelPart part = KernelPart::kKernel;
  DType memory = kFloat32;  // of an epilogue by itself: what the contraction's results are stored as
};

Schedule schedule(const LoopNest& nest, const CpuFacts& facts = {});
Schedule schedule(const LoopNest& nest, const GpuFacts& facts);

std::string to_string(const Schedule& schedule);

// How an offset moves along an axis: not at all, by one element, by a stride, or in a way no stride describes.
enum class Movement : uint8_t { kFixed, kUnit, kStrided, kIrregular };
Movement movement(const Dim& offset, const Dim& axis);
// Whether an instruction has one value for all lanes along an axis, its conditions apart.
bool is_uniform(const Sweep& sweep, int id, const Dim& axis);
// Whether the places at which a condition holds are one run of neighbours along an axis.
bool is_interval(const Condition& c, const Dim& axis);
// Whether it is not the same all along.
bool moves(const Condition& c, const Dim& axis);

// The product of the extents.
Dim points_of(const std::vector<Axis>& axes);

// While alive, kernels of the process are written one element at a time: to find out whether lanes are at fault.
class NoLanes {
 public:
  NoLanes();
  ~NoLanes();
  NoLanes(const NoLanes&) = delete;
};
bool lanes_allowed();

}  // namespace sinter
