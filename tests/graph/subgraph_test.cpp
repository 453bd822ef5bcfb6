#include "sinter/graph/subgraph.h"

#include <gtest/gtest.h>

namespace sinter {
namespace {

constexpr auto kText = R"(%0 = input : f32[s0, 2] "a; \"b\" }"
%1 = view(%0) {size=[2*s0]} : f32[2*s0]
return %1, %0
)";

SubGraph parsed(std::string_view text) {
  SubGraph out;
  parse_field(text, out);
  return out;
}

TEST(SubGraph, IsOneLineOfText) {
  SubGraph graph(Graph::parse(kText));
  std::string text = field_text(graph);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_TRUE(text.starts_with("{%0 = input : f32[s0, 2] ")) << text;
  EXPECT_TRUE(text.ends_with("; return %1, %0}")) << text;
  EXPECT_EQ(parsed(text)->text(), kText);
  EXPECT_EQ(field_text(SubGraph()), "none");
  EXPECT_FALSE(parsed("none"));
  EXPECT_THROW(parsed("%0 = input : f32[]; return %0"), Error);
  EXPECT_THROW(parsed("{%0 = input : f32[]}"), Error);
  EXPECT_THROW(parsed("{%0 = input : f32[; return %0}"), Error);
}

TEST(SubGraph, IsEqualByContent) {
  SubGraph a(Graph::parse(kText)), b(Graph::parse(kText)), other(Graph::parse("%0 = input : f32[]\nreturn %0"));
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == other);
  EXPECT_FALSE(a == SubGraph());
  EXPECT_EQ(SubGraph(), SubGraph());
}

struct Carrier {
  SubGraph body;
  Dim size = 1;
  SINTER_FIELDS(body, size)
};

TEST(SubGraph, SizesAreSubstitutedInTypesAndAttributes) {
  Attrs attrs(Carrier{SubGraph(Graph::parse(kText)), Dim::symbol("s0")});
  Attrs bound = attrs.substitute([](const std::string&) { return Dim(3); });
  EXPECT_EQ(bound.as<Carrier>().body->text(),
            "%0 = input : f32[3, 2] \"a; \\\"b\\\" }\"\n%1 = view(%0) {size=[6]} : f32[6]\nreturn %1, %0\n");
  EXPECT_EQ(attrs.as<Carrier>().body->text(), kText);
  EXPECT_EQ(bound, parse_attrs<Carrier>("carrier", {{"body", field_text(bound.as<Carrier>().body)}, {"size", "3"}}));
}

}  // namespace
}  // namespace sinter
