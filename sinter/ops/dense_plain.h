#pragma once
// The long ones of the textbook's functions, in plain loops: see the members of Dense with these names.
#include <cstdint>

namespace sinter::plain {

int ldl(int64_t n, double* a, int32_t* pivots);
int eig(int64_t n, double* a, double* values, double* vectors);
int eig_of_pairs(int64_t n, double* a, double* values, double* vectors);

}  // namespace sinter::plain
