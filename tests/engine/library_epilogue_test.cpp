// Which bodies behind a product the library takes as its epilogue.
#include "sinter/engine/cuda/library_epilogue.h"

#include <gtest/gtest.h>

#include "sinter/engine/executable/ready_graph.h"

namespace sinter {
namespace {

// The epilogue of the first fused node that the text becomes; operands are told by the names of the graph's inputs.
std::string epilogue_of(const char* text) {
  Graph graph = group_kernels(Graph::parse(text));
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    ContractionParts parts = read_contraction(node.attrs.as<FusedAttrs>());
    std::vector<IntrusivePtr<TensorImpl>> kept;
    std::vector<const TensorImpl*> inputs, outputs;
    for (auto& v : node.inputs) inputs.push_back(kept.emplace_back(row_major_of(v.type())).get());
    for (auto& type : node.types) outputs.push_back(kept.emplace_back(row_major_of(type)).get());
    if (!parts.epilogues[0]) return "nothing follows";
    auto found = library_epilogue(*parts.epilogues[0], parts.parts[0].columns(), inputs, outputs);
    if (!found) return "none";
    auto name = [&](int at) { return at < 0 ? std::string("-") : node.inputs[size_t(at)].node->name; };
    return format("added {} bias {}{}", name(found->added), name(found->bias), found->relu ? " relu" : "");
  }
  return "not fused";
}

constexpr const char* kProduct =
    "%0 = input : bf16[32, 8] \"a\"\n%1 = input : bf16[8, 16] \"b\"\n%2 = input : bf16[16] \"row\"\n"
    "%3 = input : bf16[32, 16] \"full\"\n%4 = input : bf16[32, 1] \"column\"\n"
    "%5 = mm(%0, %1) : bf16[32, 16]\n";

std::string with(const std::string& rest) { return epilogue_of((kProduct + rest).c_str()); }

TEST(LibraryEpilogue, RowsAndResiduals) {
  EXPECT_EQ(with("%7 = add(%5, %2) : bf16[32, 16]\nreturn %7\n"), "added - bias row");
  EXPECT_EQ(with("%7 = add(%3, %5) : bf16[32, 16]\nreturn %7\n"), "added full bias -");
  EXPECT_EQ(with("%7 = add(%5, %2) : bf16[32, 16]\n%8 = relu(%7) : bf16[32, 16]\nreturn %8\n"), "added - bias row relu");
  EXPECT_EQ(with("%7 = relu(%5) : bf16[32, 16]\nreturn %7\n"), "added - bias - relu");
  EXPECT_EQ(with("%7 = add(%5, %2) : bf16[32, 16]\n%8 = add(%3, %7) : bf16[32, 16]\nreturn %8\n"), "added full bias row");
}

TEST(LibraryEpilogue, WhatTheLibraryDoesNotDo) {
  EXPECT_EQ(with("%7 = add(%5, %4) : bf16[32, 16]\nreturn %7\n"), "none");
  EXPECT_EQ(with("%7 = exp(%5) : bf16[32, 16]\nreturn %7\n"), "none");
  EXPECT_EQ(with("%7 = mul(%5, %2) : bf16[32, 16]\nreturn %7\n"), "none");
  EXPECT_EQ(with("%7 = add(%5, %5) : bf16[32, 16]\nreturn %7\n"), "none");
  EXPECT_EQ(with("%7 = relu(%5) : bf16[32, 16]\n%8 = add(%7, %2) : bf16[32, 16]\nreturn %8\n"), "none");
}

}  // namespace
}  // namespace sinter
