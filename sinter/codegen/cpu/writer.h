#pragma once
// The writer of CPU kernels: rows in parallel, for each row its sweeps, as the schedule says.
#include "sinter/codegen/combine_text.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/codegen/text_writer.h"

namespace sinter::codegen {

class CpuWriter : TextWriter {
 public:
  CpuWriter(const LoopNest& nest, const Schedule& schedule)
      : nest_(nest), schedule_(schedule), in_lanes_(schedule.mode == VectorMode::kMap || schedule.mode == VectorMode::kRows) {}

  KernelText write(const std::string& name);

 private:
  // The bodies of a sweep in the three ways in which it is written.
  struct Bodies {
    BodyWriter scalar, full, partial;
  };

  // emit.cpp: what is around the sweeps.
  void prologue();
  void epilogue(const std::string& name);
  void all_rows();
  void transposed_map();
  void unpack(const std::vector<Axis>& axes);
  void open_loops(const std::vector<Axis>& axes);
  void close_loops(const std::vector<Axis>& axes);

  // sweep.cpp: over the inner axes, element by element or in lanes.
  void sweep(size_t n, const std::string& lo, const std::string& hi);
  void once(const Sweep& s);
  void common_cuts(const std::string& lo, const std::string& hi);
  void write_cuts(size_t n, const std::string& lo, const std::string& hi);
  void walk(const Sweep& s, BodyWriter& scalar, const std::string& lo, const std::string& hi);
  void walk_runs(const Sweep& s, BodyWriter& scalar, int run);
  void step(const Sweep& s, BodyWriter& scalar, const char* accumulators);
  void walk_lanes(size_t n, Bodies& bodies, const std::string& lo, const std::string& hi);
  void full_step(size_t n, BodyWriter& full, int accumulator);
  void begin_reductions(size_t n);
  void end_reductions(size_t n);
  void accumulate(const RowReduction& r, const std::string& acc, const std::string& value) {
    line(format("{} = {};", acc, combine_text(r.combine, acc, value)));
  }

  // store.cpp
  void store_one(const Store& store, const BodyWriter& body);
  void store_lanes(const Store& store, const BodyWriter& body, LaneMode mode);
  void store_pair(const Store& even, const Store& odd, const BodyWriter& body);
  void store_running(const Sweep& s, const Store& store);
  void store_combined(const Store& store, const BodyWriter& body);

  // columns.cpp
  void columns();
  void strips(const std::string& lo, const std::string& hi);
  void finish_strip(const Sweep& s, LaneMode mode);
  template <class F>
  void over_strip(F&& f);

  // search.cpp
  void search(const Sweep& s);
  void search_one_by_one(const Sweep& s, const RowReduction& r);
  void search_lanes(const Sweep& s, const RowReduction& r);
  void start_with_first(const Sweep& s, const RowReduction& r);
  void take_winners(const RowReduction& r, BodyWriter& body, const std::string& value);

  BodyWriter body(const Sweep& s, LaneMode mode) const {
    const bool scalar = schedule_.mode == VectorMode::kScalar && !nest_.inner.empty();
    return {nest_, s, scalar ? last().symbol : schedule_.vector_axis, mode};
  }
  const Axis& last() const { return nest_.inner.back(); }
  std::string last_text() const { return index_text(last().symbol); }
  std::string inner_extent() const { return nest_.inner.empty() ? "1" : index_text(last().extent); }
  std::vector<Axis> outer_inner() const {
    return {nest_.inner.begin(), nest_.inner.end() - (nest_.inner.empty() ? 0 : 1)};
  }
  std::vector<Dim> inside() const {
    std::vector<Dim> symbols;
    for (auto& axis : nest_.inner) symbols.push_back(axis.symbol);
    return symbols;
  }
  DType dtype_of(const Store& store) const { return nest_.operands[size_t(store.operand)].dtype; }
  DType tile_dtype() const;
  static std::string identity_lanes(const RowReduction& r) {
    return format("splat_{}({})", r.accumulator, identity_text(r.combine, r.accumulator));
  }

  const LoopNest& nest_;
  const Schedule& schedule_;
  const bool in_lanes_;  // along the last inner axis
};

}  // namespace sinter::codegen
