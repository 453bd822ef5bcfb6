// Fused kernels: rows in parallel, for each row its sweeps, in lanes along the last inner axis.
#include <algorithm>

#include "sinter/base/stage_times.h"
#include "sinter/codegen/combine_text.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/codegen/text_writer.h"

namespace sinter::codegen {

namespace {

constexpr int kAccumulators = 4;  // of one reduction: enough to hide the latency of an add

class FusedWriter : TextWriter {
 public:
  explicit FusedWriter(const FusedNest& nest) : nest_(nest), in_lanes_(lanes_fit(nest)) {}

  KernelText write(const std::string& name) {
    if (nest_.tiles) return write_epilogue(name);
    open("extern \"C\" void " + name + "(const i64* a_, i64 begin_, i64 end_) {");
    prologue();
    if (nest_.rows.empty() && is_map()) {
      // No rows: the range is a piece of the inner axis itself.
      common_cuts("begin_", "end_");
      sweep(nest_.sweeps[0], "begin_", "end_");
    } else if (turns()) {
      turned_map();
    } else {
      common_cuts("0", inner_extent());
      open("for (i64 at_ = begin_; at_ < end_; ++at_) {");
      unpack();
      for (auto& s : nest_.sweeps) {
        open("{");
        sweep(s, "0", inner_extent());
        close();
      }
      close();
    }
    close();
    result_.split_last = false;
    result_.text = std::move(text_);
    return std::move(result_);
  }

 private:
  // Called on each finished piece of a contraction's result.
  KernelText write_epilogue(const std::string& name) {
    open("extern \"C\" void " + name +
         "(const i64* a_, void* const* tiles_, i64 row_, i64 col_, i64 rows_, i64 cols_, i64 stride_) {");
    prologue();
    common_cuts("col_", "col_ + cols_");
    open("for (i64 t_ = 0; t_ < rows_; ++t_) {");
    line("const i64 r_ = row_ + t_, at_ = r_;");
    for (int i = 0; i < nest_.tiles; ++i)
      line(format("void* tile{}_ = (char*)tiles_[{}] + t_ * stride_ * (i64)sizeof({});", i, i, tile_memory()));
    unpack();
    for (auto& s : nest_.sweeps) sweep(s, "col_", "col_ + cols_");
    close();
    close();
    result_.text = std::move(text_);
    return std::move(result_);
  }

  DType tile_dtype() const { return tile_memory() == memory_text(kFloat64) ? kFloat64 : kFloat32; }

  std::string tile_memory() const {
    for (auto& s : nest_.sweeps)
      for (auto& instr : s.body)
        if (instr.kind == InstrKind::kTile) return memory_text(compute_dtype(instr.dtype));
    return memory_text(kFloat32);
  }

  std::string inner_extent() const { return nest_.inner.empty() ? "1" : index_text(nest_.inner.back().extent); }

  // Lanes need every access to move along the last axis by some stride. A condition may change along it where the loop can
  // be cut; nothing else may differ from lane to lane.
  static bool lanes_fit(const FusedNest& nest) {
    if (nest.inner.empty() || !lanes_allowed()) return false;
    Dim axis = nest.inner.back().symbol;
    for (auto& sweep : nest.sweeps) {
      if (sweep.once) continue;
      const LoopNest shape = nest.as_nest(sweep);
      const BodyWriter body(shape, axis, LaneMode::kFull);
      for (size_t id = 0; id < sweep.body.size(); ++id) {
        auto& instr = sweep.body[id];
        for (auto& c : instr.conditions)
          if (movement(c.value, axis) != Movement::kFixed && !can_cut(c, axis)) return false;
        if (instr.kind == InstrKind::kLoadIndex && !body.uniform(int(id))) return false;
        if ((instr.kind == InstrKind::kLoad || instr.kind == InstrKind::kIndex) &&
            movement(instr.offset, axis) == Movement::kIrregular)
          return false;
      }
      for (auto& store : sweep.stores) {
        Movement m = movement(store.offset, axis);
        if (m == Movement::kIrregular || m == Movement::kFixed) return false;
      }
    }
    return true;
  }

  static bool can_cut(const Condition& c, const Dim& axis) {
    auto step = c.value.coefficient_of(axis);
    return step && (step->same_as(1) || step->same_as(-1)) && c.multiple == 1 && !c.extent.depends_on(axis);
  }

  // The places of the last axis at which some condition of the sweep changes.
  std::vector<Dim> cuts(const Sweep& s) const {
    std::vector<Dim> places;
    if (!in_lanes_ || s.once) return places;
    Dim axis = nest_.inner.back().symbol;
    auto add = [&](const Dim& place) {
      bool known = place.same_as(0) || place.same_as(nest_.inner.back().extent);
      for (auto& other : places) known = known || other.same_as(place);
      if (!known) places.push_back(place);
    };
    for (auto& instr : s.body)
      for (auto& c : instr.conditions) {
        if (movement(c.value, axis) == Movement::kFixed) continue;
        bool upward = c.value.coefficient_of(axis)->same_as(1), bounded = !c.extent.same_as(kUnbounded);
        Dim rest = upward ? c.value - axis : c.value + axis;
        add(upward ? -rest : rest + 1);
        if (bounded) add(upward ? c.extent - rest : rest + 1 - c.extent);
      }
    return places;
  }

  // Cuts that are the same for all rows are found once.
  void common_cuts(const std::string& lo, const std::string& hi) {
    for (size_t i = 0; i < nest_.sweeps.size(); ++i) {
      auto places = cuts(nest_.sweeps[i]);
      if (!places.empty() && are_common(places)) write_cuts(places, format("cuts{}_", i), lo, hi);
    }
  }

  bool are_common(const std::vector<Dim>& places) const {
    auto params = nest_.params();
    for (auto& place : places)
      for (auto& name : place.symbols())
        if (std::find(params.begin(), params.end(), name) == params.end()) return false;
    return true;
  }

  void write_cuts(const std::vector<Dim>& places, const std::string& name, const std::string& lo, const std::string& hi) {
    std::string list = format("(i64)({})", lo);
    for (auto& place : places)
      list += format(", minimum(maximum((i64)({}), (i64)({})), (i64)({}))", index_text(place), lo, hi);
    line(format("i64 {}[] = {{}, (i64)({})};", name, list, hi));
    line(format("sort_cuts({}, {});", name, places.size() + 2));
  }

  // Where lanes would gather from columns: as many rows as lanes at a time, so that columns are loaded as vectors.
  bool turns() const {
    if (!in_lanes_ || nest_.rows.empty() || !is_map()) return false;
    Dim axis = nest_.inner.back().symbol;
    for (auto& store : nest_.sweeps[0].stores)
      if (movement(store.offset, axis) != Movement::kUnit) return false;
    if (!nest_.indexing.empty() || !cuts(nest_.sweeps[0]).empty()) return false;
    return !turnable_loads(nest_.as_nest(nest_.sweeps[0]), axis, nest_.rows.back().symbol).empty();
  }

  void turned_map() {
    result_.rows_in_lanes = true;
    const Sweep& s = nest_.sweeps[0];
    const LoopNest shape = nest_.as_nest(s);
    auto each = [&](auto&& text) {
      for (auto& store : s.stores) line(text(store));
    };
    turned_rows(
        shape, nest_.rows, nest_.inner.back(), [&] { sweep(s, "0", index_text(nest_.inner.back().extent)); },
        [&](BodyWriter& body) { each([&](auto& store) { return store_lanes(store, body, LaneMode::kFull); }); },
        [&](BodyWriter& body) { each([&](auto& store) { return store_one(store, body); }); });
  }

  bool is_map() const { return nest_.sweeps.size() == 1 && nest_.sweeps[0].reductions.empty() && !nest_.sweeps[0].once && nest_.inner.size() == 1; }

  void prologue() {
    size_t slot = take_arguments(nest_.as_nest({}), nest_.params());
    if (!nest_.indexing.empty()) line(format("i64* error_ = (i64*)a_[{}];", slot));
    // What sweeps find for the row.
    for (auto& s : nest_.sweeps)
      for (auto& r : s.reductions) line(format("{} row{}_;", type_text(compute_dtype(r.dtype), false), r.outer));
  }

  void unpack() { TextWriter::unpack(nest_.rows, nest_.rows.size()); }

  std::vector<Dim> inside() const {
    std::vector<Dim> symbols;
    for (auto& axis : nest_.inner) symbols.push_back(axis.symbol);
    return symbols;
  }

  void sweep(const Sweep& s, const std::string& lo, const std::string& hi) {
    LoopNest shape = nest_.as_nest(s);
    if (s.once) {
      BodyWriter body(shape, Dim(), LaneMode::kScalar);
      lines(body.write({}, false));
      for (auto& store : s.stores) line(store_one(store, body));
      return;
    }
    Dim axis = nest_.inner.back().symbol;
    BodyWriter scalar(shape, axis, LaneMode::kScalar), full(shape, axis, LaneMode::kFull), partial(shape, axis, LaneMode::kPartial);
    BodyWriter& first = in_lanes_ ? full : scalar;
    lines(first.write(inside(), false));
    begin_reductions(s);
    for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) {
      auto& outer = nest_.inner[d];
      open(format("for (i64 {} = 0; {} < {}; ++{}) {", index_text(outer.symbol), index_text(outer.symbol),
                  index_text(outer.extent), index_text(outer.symbol)));
    }
    std::string k = index_text(axis);
    auto places = cuts(s);
    if (!places.empty()) {
      std::string name = format("cuts{}_", &s - nest_.sweeps.data());
      if (!are_common(places)) write_cuts(places, name, lo, hi);
      full.decide_at(Dim::symbol("cut"));
      partial.decide_at(Dim::symbol("cut"));
      open(format("for (i64 piece_ = 0; piece_ <= {}; ++piece_) {", places.size()));
      line(format("const i64 cut_ = {}[piece_], stop_ = {}[piece_ + 1];", name, name));
      line("if (cut_ >= stop_) continue;");
      walk_lanes(s, full, partial, scalar, k, "cut_", "stop_");
      close();
    } else if (in_lanes_)
      walk_lanes(s, full, partial, scalar, k, lo, hi);
    else
      walk(s, scalar, k, lo, hi);
    for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) close();
    end_reductions(s);
  }

  void walk(const Sweep& s, BodyWriter& scalar, const std::string& k, const std::string& lo, const std::string& hi) {
    open(format("for (i64 {} = {}; {} < {}; ++{}) {", k, lo, k, hi, k));
    lines(scalar.write(inside(), true));
    for (auto& r : s.reductions) accumulate(r, format("acc{}_", r.outer), scalar.value(r.value, r.accumulator));
    for (auto& store : s.stores) line(store_one(store, scalar));
    close();
  }

  void walk_lanes(const Sweep& s, BodyWriter& full, BodyWriter& partial, BodyWriter& scalar, const std::string& k,
                  const std::string& lo, const std::string& hi) {
    line(format("i64 {} = {};", k, lo));
    if (!s.reductions.empty()) {
      open(format("for (; {} + {} * kLanes <= {}; ) {", k, kAccumulators, hi));
      for (int u = 0; u < kAccumulators; ++u) {
        open("{");
        full_step(s, full, u);
        close();
        line(format("{} += kLanes;", k));
      }
      close();
    }
    open(format("for (; {} + kLanes <= {}; {} += kLanes) {", k, hi, k));
    full_step(s, full, 0);
    close();
    if (any_strided(s)) {
      // A tail in lanes cannot stop a strided access short.
      open(format("for (; {} < {}; ++{}) {", k, hi, k));
      lines(scalar.write(inside(), true));
      for (auto& r : s.reductions) accumulate(r, format("tail{}_", r.outer), scalar.value(r.value, r.accumulator));
      for (auto& store : s.stores) line(store_one(store, scalar));
      return close();
    }
    open(format("if ({} < {}) {", k, hi));
    line(format("const i64 m_ = {} - {};", hi, k));
    lines(partial.write(inside(), true));
    for (auto& r : s.reductions)
      accumulate(r, format("acc{}_0_", r.outer),
                 format("select(first_lanes(m_), {}, {})", partial.value(r.value, r.accumulator), identity_lanes(r)));
    for (auto& store : s.stores) line(store_lanes(store, partial, LaneMode::kPartial));
    close();
  }

  void full_step(const Sweep& s, BodyWriter& full, int u) {
    lines(full.write(inside(), true));
    for (auto& r : s.reductions) accumulate(r, format("acc{}_{}_", r.outer, u), full.value(r.value, r.accumulator));
    for (size_t i = 0; i < s.stores.size(); ++i) {
      bool paired = i + 1 < s.stores.size() && is_pair(s.stores[i], s.stores[i + 1]);
      line(paired ? store_pair(s.stores[i], s.stores[i + 1], full) : store_lanes(s.stores[i], full, LaneMode::kFull));
      i += paired;
    }
  }

  // Even and odd places of one result.
  bool is_pair(const FusedStore& even, const FusedStore& odd) const {
    auto step = even.offset.coefficient_of(nest_.inner.back().symbol);
    return even.operand == odd.operand && step && step->same_as(2) && (odd.offset - even.offset).same_as(1);
  }

  std::string store_pair(const FusedStore& even, const FusedStore& odd, const BodyWriter& body) const {
    DType dtype = dtype_of(even), compute = compute_dtype(dtype);
    return format("store_pairs<{}>(out{}_, {}, {}, {});", memory_text(dtype), even.operand, index_text(even.offset),
                  body.value(even.value, compute), body.value(odd.value, compute));
  }

  static std::string identity_lanes(const FusedReduction& r) {
    return format("splat_{}({})", r.accumulator, identity_text(r.combine, r.accumulator));
  }

  void begin_reductions(const Sweep& s) {
    for (auto& r : s.reductions) {
      std::string identity = identity_text(r.combine, r.accumulator);
      if (!in_lanes_) {
        line(format("{} acc{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
        continue;
      }
      for (int u = 0; u < kAccumulators; ++u)
        line(format("{} acc{}_{}_ = {};", type_text(r.accumulator, true), r.outer, u, identity_lanes(r)));
      if (any_strided(s)) line(format("{} tail{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
    }
  }

  void end_reductions(const Sweep& s) {
    for (auto& r : s.reductions) {
      std::string value = format("acc{}_", r.outer);
      if (in_lanes_) {
        auto acc = [&](int u) { return format("acc{}_{}_", r.outer, u); };
        accumulate(r, acc(0), acc(1));
        accumulate(r, acc(2), acc(3));
        accumulate(r, acc(0), acc(2));
        value = format("{}({})", horizontal_text(r.combine), acc(0));
        if (any_strided(s)) value = combine_text(r.combine, value, format("tail{}_", r.outer));
      }
      line(format("row{}_ = {};", r.outer, cast_text(value, r.accumulator, compute_dtype(r.dtype))));
    }
  }

  void accumulate(const FusedReduction& r, const std::string& acc, const std::string& value) {
    line(format("{} = {};", acc, combine_text(r.combine, acc, value)));
  }

  bool any_strided(const Sweep& s) const {
    Dim axis = nest_.inner.back().symbol;
    for (auto& store : s.stores)
      if (movement(store.offset, axis) == Movement::kStrided) return true;
    for (auto& instr : s.body)
      if (instr.kind == InstrKind::kLoad && movement(instr.offset, axis) == Movement::kStrided) return true;
    return false;
  }

  DType dtype_of(const FusedStore& store) const { return nest_.operands[size_t(store.operand)].dtype; }

  std::string store_one(const FusedStore& store, const BodyWriter& body) const {
    DType dtype = dtype_of(store);
    if (store.operand == nest_.back)
      return format("store1<{}>(tile0_, {} - col_, {});", tile_memory(), index_text(nest_.inner.back().symbol),
                    body.value(store.value, tile_dtype()));
    return format("store1<{}>(out{}_, {}, {});", memory_text(dtype), store.operand, index_text(store.offset),
                  body.value(store.value, compute_dtype(dtype)));
  }

  std::string store_lanes(const FusedStore& store, const BodyWriter& body, LaneMode mode) const {
    DType dtype = dtype_of(store);
    Dim axis = nest_.inner.back().symbol;
    // The contraction rounds and stores it.
    if (store.operand == nest_.back) {
      std::string value = body.value(store.value, tile_dtype()), at = index_text(axis) + " - col_";
      if (mode == LaneMode::kPartial) return format("store_partial<{}>(tile0_, {}, m_, {});", tile_memory(), at, value);
      return format("store<{}>(tile0_, {}, {});", tile_memory(), at, value);
    }
    std::string value = body.value(store.value, compute_dtype(dtype)), at = index_text(store.offset);
    if (movement(store.offset, axis) == Movement::kStrided)
      return format("store_strided<{}>(out{}_, {}, {}, {});", memory_text(dtype), store.operand, at,
                    index_text(*store.offset.coefficient_of(axis)), value);
    if (mode == LaneMode::kPartial)
      return format("store_partial<{}>(out{}_, {}, m_, {});", memory_text(dtype), store.operand, at, value);
    return format("store<{}>(out{}_, {}, {});", memory_text(dtype), store.operand, at, value);
  }

  const FusedNest& nest_;
  const bool in_lanes_;
  KernelText result_;
};

}  // namespace

KernelText emit_cpu(const FusedNest& nest, const std::string& name) {
  StageTimer timer(CompileStage::kEmit);
  return FusedWriter(nest).write(name);
}

}  // namespace sinter::codegen
