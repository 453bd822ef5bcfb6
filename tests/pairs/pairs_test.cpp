// A slice of all pairs and chains, the same every day; `make pairs` runs all.
#include "tests/pairs/pairs_suites.h"

namespace sinter::pairs {
namespace {

SINTER_PAIR_SUITE(Pairs, run_pairs, "pairs", Slice::from_environment(40))
SINTER_PAIR_PARTS_4(Pairs, producers());

SINTER_PAIR_SUITE(PairChains, run_chains, "chains", Slice::from_environment(8))
SINTER_PAIR_PARTS_4(PairChains, selecting_ops());

}  // namespace
}  // namespace sinter::pairs
