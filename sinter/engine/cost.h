#pragma once
// What an op moves and computes at the least, from its definition: for profiles, fusion reports and advice.
#include <cstdint>
#include <span>

#include "sinter/engine/profile.h"

namespace sinter {

class Attrs;
struct Node;
struct Op;
struct OpCall;
struct TensorImpl;
struct Type;

// Bytes of the places that a tensor shows: dimensions of stride 0 show one.
int64_t footprint(const TensorImpl& tensor);

// How many elements an op visits: those of its domain, times what each is reduced over; 0 where a size is a symbol.
int64_t points_of(const OpCall& call, std::span<const Type> results);

// One application on tensors (null for a number); tensors without memory will do. An indirect index reads no more
// elements than the op visits. `in_place`: a scatter changes its first operand.
Cost cost_of(const Op& op, const Attrs& attrs, std::span<const TensorImpl* const> inputs,
             std::span<const TensorImpl* const> outputs, bool in_place = false);
// The same for a node whose sizes are numbers. Views cost nothing.
Cost cost_of(const Node& node);
// What a node takes at the least on its device, by itself and from memory.
double least_seconds(const Node& node);

}  // namespace sinter
