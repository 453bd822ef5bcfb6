#pragma once
// Whether a program may run on padded inputs: one size is rounded up, the rows beyond the true size hold zeros, and the
// outputs are cut back. The analysis behind `Buckets`.
//
// It asks two things of every op. Does an element inside the true sizes read what the unpadded program reads? Each op's
// definition is run at sample coordinates, once with a true and once with a padded size, and the reads are compared:
// this settles views, gathers, contractions and windows alike. And where whole dimensions are combined, is the padding
// neutral? What the padding holds is followed through the graph by the contents of padding_content.h: masks give zeros
// and numbers near -inf, exp turns those into zeros, and so on. Both answers come from samples: they are tested on
// every op and on random programs, not proved.
//
// What it takes for granted:
//   - Inputs hold finite numbers, and moderate numbers stay finite: NaN and inf come from log(0) or 1/0, not overflow.
//   - A number of -1e4 or less that is added or put in place of others stands for -inf: it loses every maximum, and its
//     exponential is 0.
//   - A sum or maximum meets an element that is not masked. (A softmax over nothing is NaN in either program.)
//   - Symbols other than the padded one are independent of it.
// An index that runs off a table because of the padding is an Error when the program runs, not a wrong result, and not
// looked for here.
#include "sinter/graph/graph.h"

namespace sinter {

struct PaddingFault {
  const Node* node;
  std::string what;  // "model.cpp:12: sum: …": the user's line, the op and what it does to the padding
};

struct PaddingReport {
  std::vector<PaddingFault> faults;              // empty: sound
  std::vector<std::vector<bool>> output_padded;  // per output and dimension: whether it is to be cut
};

// `symbol` names the padded size. Inputs are padded in the dimensions whose size is exactly that symbol; those that
// `is_mask_input` marks hold only 0 and 1. Where a program is sound, an output of size `2*s0 + 1` is cut to what the
// true size gives for that expression.
PaddingReport check_padding(const Graph& graph, const std::string& symbol, const std::vector<bool>& is_mask_input);

}  // namespace sinter
