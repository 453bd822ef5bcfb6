#pragma once
// Fused nests, and the maps and reductions that are written as such: elements in vectors, or rows and their sweeps.
#include <algorithm>
#include <map>
#include <set>

#include "sinter/codegen/cuda/lanes.h"
#include "sinter/codegen/cuda/writer.h"

namespace sinter::codegen {

constexpr int kRowThreads = 512, kElementThreads = 256;
constexpr size_t kMostTurned = 4;  // loads: a square each in shared memory
constexpr int64_t kMostKept = 192;  // bytes of a row in a thread's registers
constexpr size_t kSmallBody = 8;  // instructions of a loop that is worth unrolling

// A kernel by itself, the rows of another one, or an element or a run of elements of a contraction.
enum class Role { kKernel, kPart, kEpilogue, kEpilogueRun };

class FusedCudaWriter : CudaWriter {
 public:
  FusedCudaWriter(const FusedNest& nest, CudaEmitOptions options, CudaSpread reduction)
      : CudaWriter(options), nest_(nest), reduction_(reduction) {
    for (auto& s : nest.sweeps) indexes_ = indexes_ || indexes(s.body);
  }

  CudaKernelText write(const std::string& name, Role role, DType memory = kFloat32) {
    out_.name = name;
    memory_ = memory;
    if (role == Role::kEpilogue || role == Role::kEpilogueRun) {
      element(role == Role::kEpilogueRun);
    } else if (role == Role::kKernel && is_map()) {
      in_lanes_ = options_.lanes && lanes_fit(nest_);
      find_turned();
      turned_.empty() ? map() : turned_map();
    } else {
      in_lanes_ = options_.lanes && reduction_ == CudaSpread::kRows && lanes_fit(nest_);
      rows();
    }
    out_.lanes = in_lanes_ ? lane_width(nest_) : 1;
    out_.members = std::move(text_);
    if (role == Role::kKernel) finish_cuda(out_, is_map() ? kElementThreads : kRowThreads);
    return std::move(out_);
  }

 private:
  bool is_map() const {
    return nest_.sweeps.size() == 1 && nest_.sweeps[0].reductions.empty() && !nest_.sweeps[0].once && !nest_.inner.empty();
  }

  Dim axis() const { return nest_.inner.back().symbol; }

  void arguments() {
    out_.slots = take_slots(nest_.as_nest({}), nest_.params(), indexes_);
    for (auto& s : nest_.sweeps)
      for (auto& r : s.reductions) line(format("{} row{}_;", type_text(compute_dtype(r.dtype), false), r.outer));
  }

  std::vector<Dim> inside() const {
    std::vector<Dim> symbols;
    for (auto& a : nest_.inner) symbols.push_back(a.symbol);
    return symbols;
  }

  // ---- maps ----
  // A step is a vector of the last axis; the last vector of a row may be cut off.
  void map() {
    out_.spread = CudaSpread::kElements;
    std::vector<Axis> outer = outer_axes();
    const Axis& last = nest_.inner.back();
    out_.range = points_of(outer) * last.extent;
    open_run(out_.spread);
    arguments();
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
  void elements(const Sweep& s, const std::string& n) {
    const LoopNest shape = nest_.as_nest(s);
    BodyWriter scalar(shape, axis(), LaneMode::kScalar), full(shape, axis(), LaneMode::kFull);
    full.guard_loads();
    if (!in_lanes_) {
      lines(scalar.write_all());
      for (auto& store : s.stores) line(store_one(store, scalar));
    } else {
      const std::vector<Dim> along{axis()};
      lines(full.write(along, false));
      open(format("if ({} + kLanes <= {}{}{}) {", index_text(axis()), n, alike_text(nest_, s),
                  fits_text(nest_, s, true)));
      lines(full.write(along, true));
      for (auto& store : s.stores) line(store_lanes(store, full));
      close();
      open("else {");
      open_tail(n);
      lines(scalar.write(along, true));
      for (auto& store : s.stores) line(store_one(store, scalar));
      close();
      close();
    }
  }

  // One by one what a vector from here on holds, up to the end.
  void open_tail(const std::string& end) {
    std::string type = index_type(), i = index_text(axis());
    open(format("for ({} tail_ = {}, last_ = minimum({} + ({})kLanes, ({})({})); tail_ < last_; ++tail_) {", type, i, i,
                type, type, end));
    line(format("const {} {} = tail_;", type, i));
  }

  // The axes of a map but for the last one.
  std::vector<Axis> outer_axes() const {
    std::vector<Axis> outer = nest_.rows;
    outer.insert(outer.end(), nest_.inner.begin(), nest_.inner.end() - 1);
    return outer;
  }

  // Loads that lie along an axis other than the last: the innermost such axis, and all of its loads.
  void find_turned() {
    if (in_lanes_ || nest_.tiles) return;
    const Sweep& s = nest_.sweeps[0];
    for (auto& store : s.stores)
      if (movement(store.offset, axis()) != Movement::kUnit) return;
    auto outer = outer_axes();
    for (size_t n = outer.size(); n-- > 0 && turned_.empty();) {
      other_ = n;
      for (size_t id = 0; id < s.body.size() && turned_.size() < kMostTurned; ++id)
        if (turns(s.body[id], outer[n].symbol, options_.turn == int(n))) turned_.push_back(int(id));
    }
  }
  bool turns(const Instr& instr, const Dim& other, bool told) const {
    if (instr.kind != InstrKind::kLoad || !instr.conditions.empty()) return false;
    Movement m = movement(instr.offset, other);
    if (movement(instr.offset, axis()) != Movement::kStrided || (m != Movement::kUnit && !(told && m == Movement::kStrided)))
      return false;
    for (auto& before : nest_.sweeps[0].body)
      if (before.kind == InstrKind::kLoadIndex && instr.offset.depends_on(before.symbol)) return false;
    return true;
  }

  // Squares of the last axis and another one: threads side by side read along the other axis and write along the last.
  void turned_map() {
    out_.spread = CudaSpread::kTiles;
    std::vector<Axis> outer = outer_axes();
    const Axis last = nest_.inner.back(), other = outer[other_];
    outer.erase(outer.begin() + long(other_));
    out_.range = points_of(outer);
    out_.work = ((other.extent + 31) / 32) * ((last.extent + 31) / 32);
    const Sweep& s = nest_.sweeps[0];
    const LoopNest shape = nest_.as_nest(s);
    open_run(out_.spread);
    arguments();
    for (int id : turned_)
      line(format("__shared__ {} square{}_[32][33];", type_text(compute_dtype(s.body[size_t(id)].dtype), false), id));
    std::string type = index_type(), u = unsigned_type(), across = format("(({})({}) + 31) / 32", u, index_text(last.extent));
    line(format("const {} across_ = {}, down_ = (({})({}) + 31) / 32;", u, across, u, index_text(other.extent)));
    line(format("const i64 squares_ = (i64)({}) * across_ * down_;", index_text(points_of(outer))));
    open("for (i64 square_ = b_.index; square_ < squares_; square_ += b_.count) {");
    line(format("const {} at_ = ({})square_ / (across_ * down_), place_ = ({})square_ - at_ * (across_ * down_);", u, u,
                u));
    line(format("const {} first_last_ = ({})(place_ % across_ * 32), first_other_ = ({})(place_ / across_ * 32);", type,
                type, type));
    unpack_position(outer, "at_");
    auto each = [&](const std::string& along_last, const std::string& along_other) {
      line("#pragma unroll");
      open("for (u32 turn_ = 0; turn_ < kTileTurns; ++turn_) {");
      line("const u32 step_ = b_.row + turn_ * kTileRows;");
      line(format("const {} {} = first_last_ + ({}){}, {} = first_other_ + ({}){};", type, index_text(last.symbol),
                  type, along_last, index_text(other.symbol), type, along_other));
      open(format("if ({} < {} && {} < {}) {", index_text(last.symbol), index_text(last.extent),
                  index_text(other.symbol), index_text(other.extent)));
    };
    // All loads of a thread are on their way before the first is put into its square.
    for (int id : turned_)
      line(format("{} loaded{}_[kTileTurns] = {0};", type_text(compute_dtype(s.body[size_t(id)].dtype), false), id));
    each("step_", "b_.member");
    for (int id : turned_) {
      auto& instr = s.body[size_t(id)];
      line(format("loaded{}_[turn_] = load1<{}>({}, {});", id, memory_text(instr.dtype),
                  operand_text(shape, instr.operand), index_text(instr.offset)));
    }
    close();
    close();
    line("#pragma unroll");
    open("for (u32 turn_ = 0; turn_ < kTileTurns; ++turn_) {");
    for (int id : turned_) line(format("square{}_[b_.row + turn_ * kTileRows][b_.member] = loaded{}_[turn_];", id, id));
    close();
    line("__syncthreads();");
    each("b_.member", "step_");
    line("const int turned_row_ = 0;");
    for (int id : turned_)
      line(format("const TileValue<{}> turned{}_{square{}_[b_.member][step_]};",
                  type_text(compute_dtype(s.body[size_t(id)].dtype), false), id, id));
    BodyWriter scalar(shape, axis(), LaneMode::kScalar);
    scalar.read_turned(turned_);
    lines(scalar.write_all());
    for (auto& store : s.stores) line(store_one(store, scalar));
    close();
    close();
    line("__syncthreads();");
    close();
    close();
  }

  // ---- results of contractions ----
  void take_tiles() {
    if (!nest_.tiles) return;
    line("const i64 col_ = 0;");
    for (int i = 0; i < nest_.tiles; ++i) {
      line(format("const {}* result{}_ = (const {}*)a_[{}];", memory_text(memory_), i, memory_text(memory_),
                  out_.slots++));
      line(format("const i64 stride{}_ = a_[{}];", i, out_.slots++));
    }
  }
  void place_tiles(bool one_row) {
    if (!nest_.tiles) return;
    line(format("const {} r_ = {};", index_type(), one_row ? "0" : format("({})at_", index_type())));
    for (int i = 0; i < nest_.tiles; ++i)
      line(format("const TileMemory<{}> tile{}_{result{}_ + (i64)r_ * stride{}_};", memory_text(memory_), i, i, i));
  }

  // One element, whose tiles are at hand, or a vector of them, whose tiles lie in memory.
  void element(bool run) {
    in_lanes_ = run && options_.lanes && lanes_fit(nest_);
    if (run) open(format("struct {}_run : Vectors<{}> {", out_.name, in_lanes_ ? lane_width(nest_) : 1));
    line(run ? "template <class A_>" : "template <class A_, class T_>");
    open(format("{}__device__ __forceinline__ void {}(const A_& a_, const {}* tiles_,{} i64 row_, i64 col_) {",
                run ? "static " : "", run ? "finish_" : out_.name, run ? "float" : "T_", run ? " int apart_," : ""));
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
    out_.text = "namespace k {\n" + text_ + "}  // namespace k\n";
  }

  // ---- rows ----
  void rows() {
    out_.spread = reduction_;
    out_.along = reduction_ == CudaSpread::kRows;
    out_.range = points_of(nest_.rows);
    out_.work = points_of(nest_.inner);
    open_run(out_.spread);
    arguments();
    if (nest_.rows.empty() && is_map()) {
      // A map without rows, inside another kernel: the range is a piece of its one axis.
      piece_ = true;
      line("const bool valid_ = true;");
      sweep(nest_.sweeps[0]);
    } else {
      find_kept();
      open_rows(nest_.rows);
      // What a sweep has not loaded in vectors is not kept.
      if (!kept_.empty()) line("bool kept_whole_ = true;");
      for (size_t n = 0; n < kept_.size(); ++n)
        line(format("Kept<{}> kept{}_[{}];", memory_text(kept_[n].dtype), n, options_.keep));
      for (auto& s : nest_.sweeps) {
        open("{");
        sweep(s);
        close();
      }
      close();
    }
    close();
  }

  void sweep(const Sweep& s) {
    const LoopNest shape = nest_.as_nest(s);
    if (s.once) {
      BodyWriter body(shape, Dim(), LaneMode::kScalar);
      open("if (valid_ && b_.member == 0) {");
      lines(body.write({}, false));
      for (auto& store : s.stores) line(store_one(store, body));
      return close();
    }
    Dim along = nest_.inner.empty() ? Dim() : axis();
    BodyWriter scalar(shape, along, LaneMode::kScalar), full(shape, along, LaneMode::kFull);
    full.guard_loads();
    lines((in_lanes_ ? full : scalar).write(inside(), false));
    for (auto& r : s.reductions) {
      std::string identity = identity_text(r.combine, r.accumulator);
      line(format("{} tail{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
      if (in_lanes_)
        line(format("{} acc{}_ = splat_{}({});", type_text(r.accumulator, true), r.outer, r.accumulator, identity));
    }
    in_lanes_ ? walk_lanes(s, full, scalar) : walk(s, scalar);
    for (auto& r : s.reductions) {
      std::string op = join_text(r.combine), value = format("tail{}_", r.outer);
      if (in_lanes_) value = format("{}::join(join_lanes<{}>(acc{}_), {})", op, op, r.outer, value);
      value = format("join<{}>(b_, {}, {})", op, value, identity_text(r.combine, r.accumulator));
      line(format("row{}_ = {};", r.outer, cast_text(value, r.accumulator, compute_dtype(r.dtype))));
    }
  }

  // Where the last axis begins and ends.
  std::string first() const { return piece_ ? format("({})begin_ + ", index_type()) : ""; }
  std::string stop(const std::string& extent) const {
    return piece_ ? format("({})end_", index_type()) : format("valid_ ? ({})({}) : 0", index_type(), extent);
  }
  void unroll(const Sweep& s, int times) {
    if (!s.reductions.empty() && s.stores.empty() && s.body.size() <= kSmallBody) line(format("#pragma unroll {}", times));
  }

  // One element at a time, over all inner axes as one.
  void walk(const Sweep& s, BodyWriter& scalar) {
    std::string type = index_type();
    line(format("const {} stop_ = {};", type, stop(index_text(points_of(nest_.inner)))));
    unroll(s, 4);
    open(format("for ({} place_ = {}({})b_.member; place_ < stop_; place_ += ({})b_.members) {", type, first(), type,
                type));
    unpack_position(nest_.inner, "place_");
    step(s, scalar);
    close();
  }

  void step(const Sweep& s, BodyWriter& scalar) {
    lines(scalar.write(inside(), true));
    for (auto& r : s.reductions) accumulate(r, format("tail{}_", r.outer), scalar.value(r.value, r.accumulator));
    for (auto& store : s.stores) line(store_one(store, scalar));
  }

  // What several sweeps load along a row, by its text; the first sweep that loads it keeps it.
  void find_kept() {
    if (!in_lanes_ || options_.keep <= 0 || nest_.inner.size() != 1 || piece_) return;
    for (auto& s : nest_.sweeps)
      if (!s.once && !alike_text(nest_, s).empty()) return;
    std::map<std::string, std::set<const Sweep*>> users;
    std::map<std::string, DType> dtypes;
    for (auto& s : nest_.sweeps)
      for (auto& instr : s.body)
        if (can_keep(s, instr)) {
          users[place_text(instr)].insert(&s);
          dtypes[place_text(instr)] = instr.dtype;
        }
    int64_t bytes = 0;
    for (auto& [place, sweeps] : users) {
      const DType dtype = dtypes[place];
      int64_t own = options_.keep * lane_width(nest_) * item_size(dtype);
      if (sweeps.size() < 2 || bytes + own > kMostKept) continue;
      bytes += own;
      kept_.push_back({place, dtype, *std::min_element(sweeps.begin(), sweeps.end())});
    }
  }
  bool can_keep(const Sweep& s, const Instr& instr) const {
    return !s.once && instr.kind == InstrKind::kLoad && instr.conditions.empty() && !nest_.operands[size_t(instr.operand)].output &&
           movement(instr.offset, axis()) == Movement::kUnit;
  }
  std::string place_text(const Instr& instr) const {
    return format("{} {} {}", instr.operand, instr.dtype, index_text(instr.offset));
  }
  // The vector of `kept_` that a load is; -1 for none.
  int kept_at(const Sweep& s, const Instr& instr) const {
    for (size_t n = 0; n < kept_.size(); ++n)
      if (can_keep(s, instr) && kept_[n].place == place_text(instr)) return int(n);
    return -1;
  }

  // The first vectors of the row, which stay in registers. They are all on their way before the first is looked at.
  void walk_kept(const Sweep& s, BodyWriter& full) {
    std::string type = index_type(), i = index_text(axis());
    const LoopNest shape = nest_.as_nest(s);
    std::vector<int> read;
    std::set<int> loaded;
    for (size_t id = 0; id < s.body.size(); ++id)
      if (kept_at(s, s.body[id]) >= 0) read.push_back(int(id));
    std::vector<std::string> loads;
    for (int id : read) {
      auto& instr = s.body[size_t(id)];
      int n = kept_at(s, instr);
      if (kept_[size_t(n)].by == &s && loaded.insert(n).second)
        loads.push_back(format("kept{}_[turn_] = keep<{}>({}, {});", n, memory_text(instr.dtype),
                               operand_text(shape, instr.operand), index_text(instr.offset)));
    }
    if (!loads.empty()) {
      line(format("const {} start_ = {};", type, i));
      line("#pragma unroll");
      open(format("for (int turn_ = 0; turn_ < {}; ++turn_) {", options_.keep));
      line(format("const {} {} = start_ + turn_ * ({})b_.members * kLanes;", type, i, type));
      line(format("if (!whole_ || {} + kLanes > stop_) continue;", i));
      lines(loads);
      close();
    }
    line("#pragma unroll");
    open(format("for (int turn_ = 0; turn_ < {}; ++turn_, {} += ({})b_.members * kLanes) {", options_.keep, i, type));
    open(format("if (whole_ && {} + kLanes <= stop_) {", i));
    line("const int turned_row_ = 0;");
    for (int id : read) {
      auto& instr = s.body[size_t(id)];
      line(format("const Kept<{}>& turned{}_ = kept{}_[turn_];", memory_text(instr.dtype), id, kept_at(s, instr)));
    }
    full.read_turned(read);
    full_step(s, full);
    full.read_turned({});
    close();
    line(format("else if ({} < stop_) break;", i));
    close();
  }

  void full_step(const Sweep& s, BodyWriter& full) {
    lines(full.write(inside(), true));
    for (auto& r : s.reductions) accumulate(r, format("acc{}_", r.outer), full.value(r.value, r.accumulator));
    for (auto& store : s.stores) line(store_lanes(store, full));
  }

  void walk_lanes(const Sweep& s, BodyWriter& full, BodyWriter& scalar) {
    std::string type = index_type(), i = index_text(axis());
    line(format("const {} stop_ = {};", type, stop(index_text(nest_.inner.back().extent))));
    for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) {
      auto& outer = nest_.inner[d];
      open(format("for ({} {} = 0; {} < {}; ++{}) {", type, index_text(outer.symbol), index_text(outer.symbol),
                  index_text(outer.extent), index_text(outer.symbol)));
    }
    line(format("{} {} = {}({})b_.member * kLanes;", type, i, first(), type));
    // The same for all vectors of a row: they are whole accesses apart.
    line(format("const bool whole_ = {}{};", kept_.empty() ? "true" : "kept_whole_", fits_text(nest_, s, false)));
    if (!kept_.empty()) line("kept_whole_ = whole_;");
    if (!kept_.empty()) walk_kept(s, full);
    auto one_by_one = [&] {
      open_tail("stop_");
      step(s, scalar);
      close();
    };
    const std::string alike = alike_text(nest_, s);
    unroll(s, 2);
    open(format("for (; whole_ && {} + kLanes <= stop_; {} += ({})b_.members * kLanes) {", i, i, type));
    if (alike.empty()) {
      full_step(s, full);
    } else {
      open(format("if ({}) {", alike.substr(4)));
      full_step(s, full);
      close();
      open("else {");
      one_by_one();
      close();
    }
    close();
    open(format("for (; {} < stop_; {} += ({})b_.members * kLanes) {", i, i, type));
    one_by_one();
    close();
    for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) close();
  }

  void accumulate(const FusedReduction& r, const std::string& acc, const std::string& value) {
    line(format("{} = {};", acc, combine_text(r.combine, acc, value)));
  }

  std::string store_one(const FusedStore& store, const BodyWriter& body) const { return store_text("store1", store, body); }
  std::string store_lanes(const FusedStore& store, const BodyWriter& body) const { return store_text("store", store, body); }
  std::string store_text(const char* function, const FusedStore& store, const BodyWriter& body) const {
    DType dtype = nest_.operands[size_t(store.operand)].dtype;
    return format("{}<{}>(out{}_, {}, {});", function, memory_text(dtype), store.operand, index_text(store.offset),
                  body.value(store.value, compute_dtype(dtype)));
  }

  const FusedNest& nest_;
  const CudaSpread reduction_;
  bool in_lanes_ = false, indexes_ = false, piece_ = false;
  DType memory_ = kFloat32;
  struct Kept {
    std::string place;
    DType dtype;
    const Sweep* by;
  };
  std::vector<Kept> kept_;
  std::vector<int> turned_;  // loads
  size_t other_ = 0;         // the axis along which they lie
  CudaKernelText out_;
};

}  // namespace sinter::codegen
