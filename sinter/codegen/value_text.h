#pragma once
// The straight-line part of a kernel: the instructions of a sweep as C++ text, scalar or in lanes.
#include <optional>
#include <string>
#include <vector>

#include "sinter/loops/loop_nest.h"
#include "sinter/loops/schedule.h"

namespace sinter::codegen {

// How the body is being written out.
enum class LaneMode : uint8_t {
  kScalar,   // one element
  kFull,     // all lanes
  kPartial   // the first `m` lanes
};

// "f32" → "float" or "f32v"; bool → "bool" or "maskv".
std::string type_text(DType compute, bool vector);
// The type of an element in memory.
std::string memory_text(DType dtype);
// A name that a kernel's text gives to something of its own (a value, an operand, a size, a loop's variable, a parameter). All
// of these end with an underscore and nothing of a prelude does, so that none hides a function or a type.
std::string local_text(const std::string& name);
// Symbols are such names.
std::string index_text(const Dim& d);
std::string conditions_text(const Conditions& conditions);
std::string operand_text(const LoopNest& nest, int operand);
// A value of one compute type converted to another.
std::string cast_text(const std::string& value, DType from, DType to);
// A literal of a compute type.
std::string literal_text(const Scalar& value, DType compute);

class BodyWriter {
 public:
  BodyWriter(const LoopNest& nest, const Sweep& sweep, const Dim& vector_axis, LaneMode mode)
      : nest_(nest), body_(sweep.body), sweep_(sweep), axis_(vector_axis), mode_(mode) {}

  // Writes the instructions that do (or do not) depend on the symbols in `inside`; the others must be written already by
  // another BodyWriter of the same sweep in an enclosing scope.
  std::vector<std::string> write(const std::vector<Dim>& inside, bool dependent);

  // All instructions. Coordinates read from memory, and what needs them, come last: until then nothing waits for them.
  std::vector<std::string> write_all();

  // The instruction's result as a value of `compute`, in lanes unless scalar mode.
  std::string value(int id, DType compute) const;
  // These loads have been transposed: lanes of row `turned_row` lie in `transposed<id>`.
  void read_prepared(std::vector<int> ids) { prepared_ = std::move(ids); }
  // Conditions that change along the lanes' axis are taken to be what they are at this place of it.
  void decide_at(const Dim& place) { place_ = place; }
  // Loads of vectors that have conditions are written load_if<…>(condition, …), where a dialect has it: what follows need
  // not wait behind a branch.
  void guard_loads() { guards_ = true; }
  // Every lane has a row of its own: row values are in lanes too.
  void take_rows_in_lanes() { rows_in_lanes_ = true; }

  static std::string variable(int id) { return local_text("t" + std::to_string(id)); }

 private:
  // Whether it holds one number for all lanes.
  bool uniform(int id) const;
  bool depends_on_rows(int id) const;
  std::string load(const Instr& instr) const;
  std::string apply(const Instr& instr, bool uniform) const;
  std::string statement(int id) const;
  bool depends(int id, const std::vector<Dim>& inside) const;
  std::string conditions(const Instr& instr) const;

  const LoopNest& nest_;
  const std::vector<Instr>& body_;
  const Sweep& sweep_;
  Dim axis_;
  LaneMode mode_;
  std::vector<int> prepared_;
  std::optional<Dim> place_;
  bool guards_ = false, rows_in_lanes_ = false;
};

}  // namespace sinter::codegen
