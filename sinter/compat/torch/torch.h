#pragma once
// What programs for LibTorch include.
#include <sinter/torch.h>
