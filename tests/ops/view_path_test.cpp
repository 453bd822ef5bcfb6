#include "sinter/ops/view_path.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {
namespace {

ViewPath path_from(std::string_view text) {
  ViewPath path;
  parse_field(text, path);
  return path;
}

TEST(ViewPath, TextGoesRoundTrip) {
  for (auto text : {"[]", "[alias]", "[slice{start=1}, select{index=2}]", "[view{size=[2, s0]}, permute{dims=[1, 0]}]",
                    "[slice{dim=1, start=s0, end=2*s0 + 1, step=2}]"})
    EXPECT_EQ(field_text(path_from(text)), text);
  EXPECT_EQ(path_from("[ slice{ dim=0,start=1 },select{index=2} ]"), path_from("[slice{start=1}, select{index=2}]"));
  EXPECT_NE(path_from("[slice{start=1}]"), path_from("[slice{start=2}]"));
}

TEST(ViewPath, RefusesWhatIsNoPath) {
  for (auto text : {"slice", "[slice{start=1]", "[exp]", "[nothing]", "[slice{begin=1}]", "[slice{start=1}}]"})
    EXPECT_THROW(path_from(text), Error) << text;
}

TEST(ViewPath, GraphTextKeepsIt) {
  std::string text =
      "%0 = input : f32[s0, 5]\n%1 = input : f32[5]\n"
      "%2 = write(%0, %1) {path=[slice{start=1}, select{index=s0 - 2}]} : f32[s0, 5]\nreturn %2\n";
  Graph graph = Graph::parse(text);
  graph.verify();
  EXPECT_EQ(graph.text(), text);
}

TEST(ViewPath, SizesInItAreSubstituted) {
  Attrs attrs = WriteAttrs{path_from("[slice{start=s0}, view{size=[s0, 2]}]")};
  Attrs bound = attrs.substitute([](const std::string&) { return Dim(3); });
  EXPECT_EQ(bound.text(), "path=[slice{start=3}, view{size=[3, 2]}]");
}

TEST(ViewPath, Applies) {
  Tensor x = arange(20).view({4, 5});
  ViewPath path = path_from("[slice{start=1}, select{dim=1, index=2}]");
  EXPECT_EQ(apply(path, x).to_vector<int64_t>(), (std::vector<int64_t>{7, 12, 17}));
  EXPECT_EQ(ViewPath().then(*find_op("slice"), path.steps[0].attrs).then(*find_op("select"), path.steps[1].attrs),
            path);
}

TEST(Write, ReplacesAndLeavesTheBase) {
  Tensor x = zeros({2, 3}), v = ones({2});
  Tensor y = write(x, v, path_from("[select{dim=1, index=-1}]"));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(x.to_vector<double>(), std::vector<double>(6));
  EXPECT_TRUE(write(x, y, {}).is_same(y));
}

TEST(Write, GradientsReachBoth) {
  Tensor x = ones({2, 3}).requires_grad_(), v = ones({3}).requires_grad_();
  (write(x, v, path_from("[select{index=1}]")) * 3).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3, 3, 3, 0, 0, 0}));
  EXPECT_EQ(v.grad().to_vector<double>(), (std::vector<double>{3, 3, 3}));
}

TEST(Write, RefusesValuesThatDoNotFit) {
  Tensor x = zeros({2, 3});
  ViewPath row = path_from("[select{index=1}]");
  EXPECT_THROW(write(x, ones({2}), row), Error);
  EXPECT_THROW(write(x, ones({3}, kFloat64), row), Error);
  EXPECT_THROW(write(x, ones({}), row), Error);
}

}  // namespace
}  // namespace sinter
