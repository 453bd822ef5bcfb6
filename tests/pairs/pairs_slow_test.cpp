// All pairs and chains: `make pairs`.
#include "tests/pairs/pairs_suites.h"

namespace sinter::pairs {
namespace {

SINTER_PAIR_SUITE(AllPairs, run_pairs, "pairs", Slice::from_environment(1))
SINTER_PAIR_PARTS_12(AllPairs, producers());

SINTER_PAIR_SUITE(AllPairChains, run_chains, "chains", Slice::from_environment(1))
SINTER_PAIR_PARTS_12(AllPairChains, selecting_ops());

}  // namespace
}  // namespace sinter::pairs
