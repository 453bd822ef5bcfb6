#pragma once
// The writer of GPU kernels: elements, points or rows, spread as the schedule says.
#include "sinter/codegen/combine_text.h"
#include "sinter/codegen/gpu/emit.h"
#include "sinter/codegen/text_writer.h"

namespace sinter::codegen {

class GpuWriter : TextWriter {
 public:
  GpuWriter(const LoopNest& nest, const Schedule& schedule)
      : nest_(nest), schedule_(schedule), in_lanes_(schedule.mode != VectorMode::kScalar) {}

  GpuKernelText write(const std::string& name);

 private:
  // writer.cpp: arguments, positions, and what several kinds of kernels share.
  void arguments();
  void take_operands();
  void unpack_position(const std::vector<Axis>& axes, const std::string& at);
  void open_run();
  void open_rows();
  void open_tail(const std::string& end, const std::string& run = "kLanes");
  void accumulate(const RowReduction& r, const std::string& acc, const std::string& value) {
    line(format("{} = {};", acc, combine_text(r.combine, acc, value)));
  }
  void store_one(const Store& store, const BodyWriter& body) { store_as("store1", store, body); }
  void store_lanes(const Store& store, const BodyWriter& body) { store_as("store", store, body); }
  void store_as(const char* function, const Store& store, const BodyWriter& body);

  // maps.cpp: elements, and what follows contractions.
  void map();
  void elements(const Sweep& s, const std::string& n);
  void transposed_map();
  void load_squares(const Sweep& s);
  void open_square_steps(const std::string& along_last, const std::string& along_other);
  void take_tiles();
  void place_tiles(bool one_row);
  void element(const std::string& name);

  // rows.cpp: sweeps over rows that threads share.
  void rows();
  void sweep(size_t n);
  void walk(size_t n, BodyWriter& scalar);
  void walk_lanes(size_t n, BodyWriter& full, BodyWriter& scalar);
  void walk_held(size_t n, BodyWriter& full);
  void step(const Sweep& s, BodyWriter& scalar);
  void full_step(const Sweep& s, BodyWriter& full);
  void unroll(size_t n);
  int held_at(const Instr& instr) const;
  std::string first() const { return schedule_.over_inner ? format("({})begin_ + ", index_type()) : ""; }
  std::string stop(const std::string& extent) const {
    return schedule_.over_inner ? format("({})end_", index_type()) : format("valid_ ? ({})({}) : 0", index_type(), extent);
  }

  // columns.cpp: rows side by side in memory, a vector of them a thread.
  void columns();
  void sweep_columns(size_t n);
  void finish_columns(size_t n);
  void open_each_lane(size_t n);
  void open_places(size_t n);
  std::string columns_fit_text() const;
  std::string lanes_extent() const;
  const Dim& axis_of_lanes() const { return schedule_.vector_axis; }

  // search.cpp: searches, scans and scatters.
  void search(const Sweep& s);
  void search_vectors(const Sweep& s, BodyWriter& body, const std::string& largest);
  void search_elements(const Sweep& s, const std::string& largest);
  void scan();
  void scatter();
  void scatter_atomically(const Store& store, const BodyWriter& body);

  std::string index_type() const { return schedule_.wide ? "i64" : "i32"; }
  std::string unsigned_type() const { return schedule_.wide ? "u64" : "u32"; }
  // Along which lanes lie, or a thread's places.
  Dim axis() const { return nest_.inner.empty() ? Dim() : nest_.inner.back().symbol; }
  std::vector<Dim> inside() const {
    std::vector<Dim> symbols;
    for (auto& a : nest_.inner) symbols.push_back(a.symbol);
    return symbols;
  }
  BodyWriter scalar_body(const Sweep& s) const { return {nest_, s, axis(), LaneMode::kScalar}; }
  BodyWriter full_body(const Sweep& s) const {
    BodyWriter full(nest_, s, axis(), LaneMode::kFull);
    full.guard_loads();
    return full;
  }
  DType dtype_of(const Store& store) const { return nest_.operands[size_t(store.operand)].dtype; }

  const LoopNest& nest_;
  const Schedule& schedule_;
  const bool in_lanes_;
  int slots_ = 0;
};

// "Rows": the prelude's name of the threads that share a point.
std::string block_text(Spread spread);
// "Sum": the prelude's name of a combination.
const char* join_text(Combine combine);

}  // namespace sinter::codegen
