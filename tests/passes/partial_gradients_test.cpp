#include "sinter/passes/partial_gradients.h"

#include <gtest/gtest.h>

#include "sinter/sinter.h"

namespace sinter {
namespace {

// Gradients of two results, whose tangents are %1 and %2, with respect to two operands.
const char* const kTwo = R"(%0 = input : f32[3] "saved"
%1 = input : f32[3] "tangent"
%2 = input : f32[3] "tangent"
%3 = mul(%1, %0) : f32[3]
%4 = div(%2, %0) : f32[3]
%5 = add(%3, %4) : f32[3]
%6 = neg(%4) : f32[3]
return %5, %6
)";

std::string part(const char* text, const std::vector<bool>& flowing, const std::vector<bool>& wanted) {
  return partial_gradients(Graph::parse(text), flowing, wanted).text();
}

std::string as_printed(const char* text) { return Graph::parse(text).text(); }

TEST(PartialGradients, WhatNothingFlowsThroughIsGone) {
  EXPECT_EQ(part(kTwo, {true, true}, {true, true}), as_printed(kTwo));
  EXPECT_EQ(part(kTwo, {true, false}, {true, false}), as_printed(R"(%0 = input : f32[3] "saved"
%1 = input : f32[3] "tangent"
%2 = input : f32[3] "tangent"
%3 = mul(%1, %0) : f32[3]
return %3
)"));
  EXPECT_EQ(part(kTwo, {false, true}, {true, true}), as_printed(R"(%0 = input : f32[3] "saved"
%1 = input : f32[3] "tangent"
%2 = input : f32[3] "tangent"
%3 = div(%2, %0) : f32[3]
%4 = neg(%3) : f32[3]
return %3, %4
)"));
}

TEST(PartialGradients, OpsThatTakeBothGetZeros) {
  EXPECT_EQ(part(R"(%0 = input : f32[2] "tangent"
%1 = input : f32[3] "tangent"
%2 = exp(%1) : f32[3]
%3 = cat(%0, %2) {dim=0} : f32[5]
return %3
)", {true, false}, {true}), as_printed(R"(%0 = input : f32[2] "tangent"
%1 = input : f32[3] "tangent"
%2 = scalar {value=0} : weak i64[]
%3 = full(%2) {size=[3]} : f32[3]
%4 = cat(%0, %3) {dim=0} : f32[5]
return %4
)"));
}

// floor's gradient is zeros, whatever flows into it.
TEST(PartialGradients, WhatReadsNoTangentStays) {
  EXPECT_EQ(part(R"(%0 = input : f32[3] "tangent"
%1 = input : f32[3] "tangent"
%2 = scalar {value=0} : weak i64[]
%3 = full(%2) {size=[3]} : f32[3]
%4 = add(%3, %1) : f32[3]
return %3, %4
)", {true, false}, {true, true}), as_printed(R"(%0 = input : f32[3] "tangent"
%1 = input : f32[3] "tangent"
%2 = scalar {value=0} : weak i64[]
%3 = full(%2) {size=[3]} : f32[3]
return %3, %3
)"));
}

}  // namespace
}  // namespace sinter
