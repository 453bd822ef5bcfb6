#pragma once
// Probability distributions: #include <sinter/distributions.h>, beside <sinter/sinter.h>.
#include "sinter/distributions/continuous.h"
#include "sinter/distributions/discrete.h"
#include "sinter/distributions/distribution.h"
#include "sinter/distributions/gamma_family.h"
#include "sinter/distributions/kl.h"
#include "sinter/distributions/multivariate_normal.h"
#include "sinter/distributions/transformed.h"
