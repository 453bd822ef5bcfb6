#include "sinter/graph/type.h"

#include "tests/graph/test_ops.h"

namespace sinter {
namespace {

TEST(Type, TextRoundTrips) {
  for (auto* text : {"f32[2, s0]", "bf16[4]@cuda:0", "weak f64[]", "i64[2*s0 + 1, max(s0, s1)]@cuda:3", "bool[0]",
                     "u8[((s0 + 1) / (2))]"}) {
    Type type = parse_type(text);
    EXPECT_EQ(to_string(type), text);
    EXPECT_EQ(parse_type(to_string(type)), type);
  }
}

TEST(Type, RejectsWhatIsNoType) {
  for (auto* text : {"", "f32", "f33[2]", "f32[2", "f32[2]]", "f32[-1]", "f32[2]@gpu", "f32[2]@", "f32[2,]", "f32[,]",
                     "weakf64[]", "f32[2 3]", "f32(2)", "[2]", "f32[99999999999999999999]", "f32[s0 +]", "f32[1/0]"})
    EXPECT_THROW(parse_type(text), Error) << text;
  std::string deep = "f32[" + std::string(100000, '(') + "1" + std::string(100000, ')') + "]";
  EXPECT_THROW(parse_type(deep), Error);
}

// torch.result_type of every pair of: a vector of each dtype, a 0-d tensor of each, True, 1, 1.0, 1j.
// ? bool, B u8, b i8, h i16, i i32, l i64, e f16, g bf16, f f32, d f64, F c64 (for PyTorch's halves too), D c128.
constexpr const char* kExpected[] = {
    "?BbhilegfdFD?BbhilegfdFD?lfF", "BBhhilegfdFDBBBBBBegfdFDBBfF", "bhbhilegfdFDbbbbbbegfdFDbbfF",
    "hhhhilegfdFDhhhhhhegfdFDhhfF", "iiiiilegfdFDiiiiiiegfdFDiifF", "llllllegfdFDllllllegfdFDllfF",
    "eeeeeeeffdFDeeeeeeeeeeFFeeeF", "ggggggfgfdFDggggggggggFFgggF", "fffffffffdFDffffffffffFFfffF",
    "ddddddddddDDddddddddddDDdddD", "FFFFFFFFFDFDFFFFFFFFFFFFFFFF", "DDDDDDDDDDDDDDDDDDDDDDDDDDDD",
    "?BbhilegfdFD?BbhilegfdFD?lfF", "BBbhilegfdFDBBhhilegfdFDBBfF", "bBbhilegfdFDbhbhilegfdFDbbfF",
    "hBbhilegfdFDhhhhilegfdFDhhfF", "iBbhilegfdFDiiiiilegfdFDiifF", "lBbhilegfdFDllllllegfdFDllfF",
    "eeeeeeegfdFDeeeeeeeffdFDeeeF", "ggggggegfdFDggggggfgfdFDgggF", "ffffffegfdFDfffffffffdFDfffF",
    "ddddddegfdFDddddddddddDDdddD", "FFFFFFFFFDFDFFFFFFFFFDFDFFFF", "DDDDDDFFFDFDDDDDDDDDDDDDDDDD",
    "?BbhilegfdFD?BbhilegfdFD?lfF", "lBbhilegfdFDlBbhilegfdFDllfF", "ffffffegfdFDffffffegfdFDfffF",
    "FFFFFFFFFDFDFFFFFFFFFDFDFFFF"};

TEST(Type, PromotesAsPyTorch) {
  constexpr std::string_view kLetters = "?BbhilegfdFD";
  std::vector<Type> operands;
  for (int d = 0; d < kDTypeCount; ++d) operands.push_back({.dtype = DType(d), .shape = {2}, .device = {}});
  for (int d = 0; d < kDTypeCount; ++d) operands.push_back({.dtype = DType(d), .shape = {}, .device = {}});
  for (DType d : {kBool, kInt64, kFloat64, kComplex128}) operands.push_back({.dtype = d, .shape = {}, .device = {}, .weak = true});
  for (size_t a = 0; a < operands.size(); ++a)
    for (size_t b = 0; b < operands.size(); ++b) {
      Type pair[] = {operands[a], operands[b]};
      EXPECT_EQ(kLetters[size_t(promote_operands(pair))], kExpected[a][b])
          << pair[0].rank() << to_string(pair[0]) << " with " << to_string(pair[1]);
    }
}

TEST(Attrs, FieldsRoundTripAndRejectGarbage) {
  using test_ops::PadAttrs;
  PadAttrs attrs{.before = -3, .after = 4, .value = 1e-300, .mode = "a \"b\", {c}=\\ \n"};
  Graph g;
  auto x = g.add_input(parse_type("f32[5]"));
  g.set_outputs({g.add(op_of<test_ops::Pad>, {x}, attrs).result()});
  Graph back = test_ops::parse(g.text());
  EXPECT_EQ(back.nodes()[1].attrs, Attrs(attrs)) << g.text();
  EXPECT_EQ(Attrs(PadAttrs{}).text(), "");
  for (double value : {0.1, -0.0, 1e22, 5.0, -std::numeric_limits<double>::infinity()}) {
    Scalar read;
    parse_field(field_text(Scalar(value)), read);
    EXPECT_EQ(read, Scalar(value));
  }
  Scalar nan;
  parse_field(field_text(Scalar(NAN)), nan);
  EXPECT_TRUE(nan.is_floating() && std::isnan(nan.to_double()));
  int64_t integer;
  double number;
  bool truth;
  DType dtype;
  IntList list;
  Shape shape;
  std::string text;
  for (auto* bad : {"", "x", "1x", "--1", "1 ", "99999999999999999999"})
    EXPECT_THROW(parse_field(bad, integer), Error) << bad;
  for (auto* bad : {"", "x", "1.5.2", "1.0f"}) EXPECT_THROW(parse_field(bad, number), Error) << bad;
  for (auto* bad : {"", "1", "True"}) EXPECT_THROW(parse_field(bad, truth), Error) << bad;
  EXPECT_THROW(parse_field("float", dtype), Error);
  for (auto* bad : {"", "1", "[1", "[1]]", "[1,,2]", "[1, ]", "[a]", "[1][2]"})
    EXPECT_THROW(parse_field(bad, list), Error) << bad;
  for (auto* bad : {"s0", "[s0", "[s0 s1]"}) EXPECT_THROW(parse_field(bad, shape), Error) << bad;
  for (auto* bad : {"", "\"", "a", "\"a\"b", "\"a\\\""}) EXPECT_THROW(parse_field(bad, text), Error) << bad;
}

TEST(Attrs, SubstitutesTheSymbolsOfSizes) {
  test_ops::ShapeAttrs attrs{.shape = {Dim::symbol("s0") * 2, 3}, .start = Dim::symbol("s1") + 1};
  auto numbers = Attrs(attrs).substitute([](const std::string& name) { return Dim(name == "s0" ? 5 : 7); });
  EXPECT_EQ(numbers.text(), "shape=[10, 3], start=8");
}

}  // namespace
}  // namespace sinter
