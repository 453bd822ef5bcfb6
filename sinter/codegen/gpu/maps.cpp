// Elements of a map, in vectors or in squares, and what follows contractions.
#include "sinter/codegen/gpu/lanes.h"
#include "sinter/codegen/gpu/writer.h"

namespace sinter::codegen {

// A step is a vector of the last axis; the last vector of a row may be cut off.
void GpuWriter::map() {
  const std::vector<Axis> outer(schedule_.range.begin(), schedule_.range.end() - 1);
  const Axis& last = nest_.inner.back();
  open_run();
  take_tiles();
  std::string type = index_type(), n = index_text(last.extent), i = index_text(last.symbol), count = n;
  if (in_lanes_) {
    line(format("const {} vectors_ = ({} + kLanes - 1) / kLanes;", type, n));
    count = "vectors_";
  }
  line(format("const i64 steps_ = (i64)({}) * ({});", index_text(points_of(outer)), count));
  open("for (i64 step_ = first_step(b_); step_ < steps_; step_ += all_threads(b_)) {");
  if (outer.empty()) {
    line(format("const {} {} = ({})step_{};", type, i, type, in_lanes_ ? " * kLanes" : ""));
  } else {
    std::string u = unsigned_type();
    line(format("const {} at_ = ({})step_ / ({})({});", u, u, u, count));
    line(format("const {} {} = ({})(({})step_ - at_ * ({})({})){};", type, i, type, u, u, count,
                in_lanes_ ? " * kLanes" : ""));
    unpack_position(outer, "at_");
  }
  place_tiles(outer.empty());
  elements(nest_.sweeps[0], n);
  close();
  close();
}

// The element at hand, or a vector of which up to n elements of the axis exist.
void GpuWriter::elements(const Sweep& s, const std::string& n) {
  BodyWriter scalar = scalar_body(s), full = full_body(s);
  if (!in_lanes_) {
    lines(scalar.write_all());
    for (auto& store : s.stores) store_one(store, scalar);
    return;
  }
  const std::vector<Dim> along{axis()};
  lines(full.write(along, false));
  open(format("if ({} + kLanes <= {}{}{}) {", index_text(axis()), n, alike_text(nest_, s), fits_text(nest_, s, true)));
  lines(full.write(along, true));
  for (auto& store : s.stores) store_lanes(store, full);
  close();
  open("else {");
  open_tail(n);
  lines(scalar.write(along, true));
  for (auto& store : s.stores) store_one(store, scalar);
  close();
  close();
}

// ---- squares ----
// Squares of the last axis and another one: threads side by side read along the other axis and write along the last.
void GpuWriter::transposed_map() {
  const Axis &last = nest_.inner.back(), &other = schedule_.transposed_axis;
  const Sweep& s = nest_.sweeps[0];
  open_run();
  auto type_of = [&](int id) { return type_text(compute_dtype(s.body[size_t(id)].dtype), false); };
  for (int id : schedule_.transposed) line(format("__shared__ {} square{}_[{}][{}];", type_of(id), id, kSquare, kSquare + 1));
  std::string type = index_type(), u = unsigned_type(),
              round_up = format("+ {}) / {}", kSquare - 1, kSquare);
  line(format("const {} across_ = (({})({}) {}, down_ = (({})({}) {};", u, u, index_text(last.extent), round_up, u,
              index_text(other.extent), round_up));
  line(format("const i64 squares_ = (i64)({}) * across_ * down_;", index_text(schedule_.points())));
  open("for (i64 square_ = b_.index; square_ < squares_; square_ += b_.count) {");
  line(format("const {} at_ = ({})square_ / (across_ * down_), place_ = ({})square_ - at_ * (across_ * down_);", u, u,
              u));
  line(format("const {} first_last_ = ({})(place_ % across_ * {}), first_other_ = ({})(place_ / across_ * {});", type,
              type, kSquare, type, kSquare));
  unpack_position(schedule_.range, "at_");
  load_squares(s);
  line("__syncthreads();");
  open_square_steps("b_.member", "step_");
  line("const int prepared_row_ = 0;");
  for (int id : schedule_.transposed)
    line(format("const TileValue<{}> prepared{}_{square{}_[b_.member][step_]};", type_of(id), id, id));
  BodyWriter scalar = scalar_body(s);
  scalar.read_prepared(schedule_.transposed);
  lines(scalar.write_all());
  for (auto& store : s.stores) store_one(store, scalar);
  close();
  close();
  line("__syncthreads();");
  close();
  close();
}

// The places of the square that the thread has, of those that exist.
void GpuWriter::open_square_steps(const std::string& along_last, const std::string& along_other) {
  const Axis &last = nest_.inner.back(), &other = schedule_.transposed_axis;
  std::string type = index_type();
  line("#pragma unroll");
  open("for (u32 round_ = 0; round_ < kTileRounds; ++round_) {");
  line("const u32 step_ = b_.row + round_ * kTileRows;");
  line(format("const {} {} = first_last_ + ({}){}, {} = first_other_ + ({}){};", type, index_text(last.symbol), type,
              along_last, index_text(other.symbol), type, along_other));
  open(format("if ({} < {} && {} < {}) {", index_text(last.symbol), index_text(last.extent), index_text(other.symbol),
              index_text(other.extent)));
}

// All loads of a thread are on their way before the first is put into its square.
void GpuWriter::load_squares(const Sweep& s) {
  for (int id : schedule_.transposed)
    line(format("{} loaded{}_[kTileRounds] = {0};", type_text(compute_dtype(s.body[size_t(id)].dtype), false), id));
  open_square_steps("step_", "b_.member");
  for (int id : schedule_.transposed) {
    auto& instr = s.body[size_t(id)];
    line(format("loaded{}_[round_] = load1<{}>({}, {});", id, memory_text(instr.dtype),
                operand_text(nest_, instr.operand), index_text(instr.offset)));
  }
  close();
  close();
  line("#pragma unroll");
  open("for (u32 round_ = 0; round_ < kTileRounds; ++round_) {");
  for (int id : schedule_.transposed)
    line(format("square{}_[b_.row + round_ * kTileRows][b_.member] = loaded{}_[round_];", id, id));
  close();
}

// ---- results of contractions ----
void GpuWriter::take_tiles() {
  if (!nest_.tiles) return;
  std::string memory = memory_text(schedule_.memory);
  line("const i64 col_ = 0;");
  for (int i = 0; i < nest_.tiles; ++i) {
    line(format("const {}* result{}_ = (const {}*)a_[{}];", memory, i, memory, slots_++));
    line(format("const i64 stride{}_ = a_[{}];", i, slots_++));
  }
}

void GpuWriter::place_tiles(bool one_row) {
  if (!nest_.tiles) return;
  line(format("const {} r_ = {};", index_type(), one_row ? "0" : format("({})at_", index_type())));
  for (int i = 0; i < nest_.tiles; ++i)
    line(format("const TileMemory<{}> tile{}_{result{}_ + (i64)r_ * stride{}_};", memory_text(schedule_.memory), i, i, i));
}

// One element, whose tiles are at hand, or a vector of them, whose tiles lie in memory.
void GpuWriter::element(const std::string& name) {
  const bool run = schedule_.part == KernelPart::kRun;
  if (run) open(format("struct {}_run : Vectors<{}> {", name, schedule_.lanes));
  line(run ? "template <class A_>" : "template <class A_, class T_>");
  open(format("{}__device__ __forceinline__ void {}(const A_& a_, const {}* tiles_,{} i64 row_, i64 col_) {",
              run ? "static " : "", run ? "finish_" : name, run ? "float" : "T_", run ? " int apart_," : ""));
  arguments();
  line(format("const {} r_ = ({})row_;", index_type(), index_type()));
  for (int i = 0; i < nest_.tiles; ++i)
    line(run ? format("const TileMemory<{}> tile{}_{tiles_ + {} * apart_};", memory_text(kFloat32), i, i)
             : format("const TileValue<T_> tile{}_{tiles_[{}]};", i, i));
  unpack_position(nest_.rows, "row_");
  line(format("const {} {} = ({})col_;", index_type(), index_text(axis()), index_type()));
  for (auto& s : nest_.sweeps) {
    open("{");
    elements(s, index_text(nest_.inner.back().extent));
    close();
  }
  close();
  if (run) close("};");
}

}  // namespace sinter::codegen
