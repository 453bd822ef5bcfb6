#pragma once
// Saving and loading with LibTorch's words: #include <sinter/serialize.h>, beside <sinter/sinter.h>.
#include "sinter/serialize/serialize.h"
