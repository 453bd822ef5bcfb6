#pragma once
// Sparse tensors: #include <sinter/sparse.h>, beside <sinter/sinter.h>.
#include "sinter/sparse/sparse.h"
