// Stores of a CPU kernel.
#include "sinter/codegen/cpu/writer.h"

namespace sinter::codegen {

void CpuWriter::store_one(const Store& store, const BodyWriter& body) {
  if (store.combine != Combine::kNone && store.combine != Combine::kReplace) return store_combined(store, body);
  // The contraction rounds and stores what goes back.
  if (store.operand == nest_.back)
    return line(format("store1<{}>(tile0_, {} - col_, {});", memory_text(tile_dtype()), last_text(),
                       body.value(store.value, tile_dtype())));
  DType dtype = dtype_of(store);
  line(format("store1<{}>({}, {}, {});", memory_text(dtype), operand_text(nest_, store.operand),
              index_text(store.offset), body.value(store.value, compute_dtype(dtype))));
}

void CpuWriter::store_lanes(const Store& store, const BodyWriter& body, LaneMode mode) {
  std::string place, count = mode == LaneMode::kPartial ? "m_, " : "";
  const char* function = mode == LaneMode::kPartial ? "store_partial" : schedule_.stream ? "stream" : "store";
  DType dtype = dtype_of(store), compute = compute_dtype(dtype);
  if (store.operand == nest_.back) {
    dtype = compute = tile_dtype();
    place = format("tile0_, {} - col_", last_text());
  } else {
    place = operand_text(nest_, store.operand) + ", " + index_text(store.offset);
    if (movement(store.offset, schedule_.vector_axis) == Movement::kStrided) {
      function = mode == LaneMode::kPartial ? "store_strided_partial" : "store_strided";
      place += ", " + index_text(*store.offset.coefficient_of(schedule_.vector_axis));
    }
  }
  line(format("{}<{}>({}, {}{});", function, memory_text(dtype), place, count, body.value(store.value, compute)));
}

// Even and odd places of one result.
void CpuWriter::store_pair(const Store& even, const Store& odd, const BodyWriter& body) {
  DType dtype = dtype_of(even), compute = compute_dtype(dtype);
  line(format("store_pairs<{}>({}, {}, {}, {});", memory_text(dtype), operand_text(nest_, even.operand),
              index_text(even.offset), body.value(even.value, compute), body.value(odd.value, compute)));
}

// What a scan has come to.
void CpuWriter::store_running(const Sweep& s, const Store& store) {
  DType dtype = dtype_of(store);
  for (auto& r : s.reductions)
    if (r.outer == store.running)
      line(format("store1<{}>({}, {}, {});", memory_text(dtype), operand_text(nest_, store.operand),
                  index_text(store.offset), cast_text(format("acc{}_", r.outer), r.accumulator, compute_dtype(dtype))));
}

// With what is there already.
void CpuWriter::store_combined(const Store& store, const BodyWriter& body) {
  DType dtype = dtype_of(store), compute = compute_dtype(dtype), acc = store.accumulator;
  std::string memory = memory_text(dtype), operand = operand_text(nest_, store.operand);
  line(format("const i64 to_ = {};", index_text(store.offset)));
  std::string old = cast_text(format("load1<{}>({}, to_)", memory, operand), compute, acc);
  std::string sum = combine_text(store.combine, old, body.value(store.value, acc));
  line(format("store1<{}>({}, to_, {});", memory, operand, cast_text(sum, acc, compute)));
}

}  // namespace sinter::codegen
