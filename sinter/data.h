#pragma once
// Feeding data to a model: #include <sinter/data.h>, beside <sinter/sinter.h>.
#include "sinter/data/audio.h"
#include "sinter/data/data_loader.h"
#include "sinter/data/dataset.h"
#include "sinter/data/example.h"
#include "sinter/data/image.h"
#include "sinter/data/image_folder.h"
#include "sinter/data/npy.h"
#include "sinter/data/pt.h"
#include "sinter/data/random.h"
#include "sinter/data/sampler.h"
#include "sinter/data/tokens.h"
#include "sinter/data/transforms.h"
