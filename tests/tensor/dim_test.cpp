#include "sinter/tensor/dim.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"

namespace sinter {
namespace {

const Dim a = Dim::symbol("a"), b = Dim::symbol("b");

TEST(Dim, NumbersDivideTowardMinusInfinity) {
  for (int64_t x = -7; x <= 7; ++x)
    for (int64_t y : {-3, -1, 1, 2, 3}) {
      Dim q = Dim(x) / Dim(y), r = Dim(x) % Dim(y);
      EXPECT_EQ(q.number() * y + r.number(), x);
      EXPECT_TRUE(r.number() == 0 || (r.number() < 0) == (y < 0)) << x << " % " << y;
    }
  EXPECT_THROW(Dim(1) / Dim(0), InternalError);
  EXPECT_THROW(a % Dim(0), InternalError);
}

TEST(Dim, EqualExpressionsAreIdentical) {
  EXPECT_TRUE((a + b).same_as(b + a));
  EXPECT_TRUE(((a + 1) * (a - 1)).same_as(a * a - 1));
  EXPECT_TRUE((a + a - 2 * a).same_as(0));
  EXPECT_TRUE(((a * b) / b).same_as(a));
  EXPECT_TRUE(((4 * a + 3) / 4).same_as(a));
  EXPECT_TRUE(((4 * a + 3) % 4).same_as(3));
  EXPECT_TRUE(((a * b + 1) / b).same_as(a + Dim(1) / b));
  EXPECT_TRUE(max(a + 1, a).same_as(a + 1));
  EXPECT_TRUE(min(a + 1, a).same_as(a));
  EXPECT_FALSE(a.same_as(b));
  EXPECT_EQ((a + b).hash(), (b + a).hash());
  EXPECT_NE(a.hash(), b.hash());
}

TEST(Dim, WhatTheStructureAnswersIsNotAsked) {
  EXPECT_TRUE(a == a);
  EXPECT_TRUE(a < a + 1);
  EXPECT_FALSE(a + 1 <= a);
  EXPECT_TRUE(2 * a + 1 > 2 * a);
  EXPECT_THROW((void)(a == b), Error);
  EXPECT_THROW((void)(a < 3), Error);
  EXPECT_THROW((void)int64_t(a), Error);
  EXPECT_THROW((void)a.to_int(), Error);
  EXPECT_THROW((void)a.number(), InternalError);
}

TEST(Dim, TextRoundTrips) {
  for (const Dim& d : {Dim(0), Dim(-5), Dim(INT64_MAX), a, -a, 2 * a + 1, a * b - 3, (a + 1) / 2, (a + 1) % b,
                       max(a, b) * 3, min(a, 2 * b) + a, ((a + 1) / 2 + b) / 3, a * a}) {
    EXPECT_TRUE(parse_dim(to_string(d)).same_as(d)) << to_string(d);
  }
  EXPECT_EQ(to_string(2 * a + 1), "2*a + 1");
  EXPECT_EQ(to_string(1 - a), "-a + 1");
}

TEST(Dim, RejectsWhatIsNoExpression) {
  for (auto* text : {"", "+", "a +", "a b", "(a", "a)", "1/0", "a % (b - b)", "max(a)", "max(a, b", "2a", "$",
                     "9223372036854775808", "a,b", "1.5"})
    EXPECT_THROW(parse_dim(text), Error) << text;
  EXPECT_THROW(parse_dim(std::string(1000000, '(')), Error);
  EXPECT_THROW(parse_dim(std::string(1000000, '-')), Error);
}

TEST(Dim, SubstitutesEverywhere) {
  auto at = [](const Dim& d) {
    return d.substitute([](const std::string& name) { return Dim(name == "a" ? 7 : -3); }).number();
  };
  EXPECT_EQ(at(2 * a * b + a), -35);
  EXPECT_EQ(at(a / b), -3);
  EXPECT_EQ(at(a % b), -2);
  EXPECT_EQ(at(max(a, b) - min(a, b)), 10);
  EXPECT_TRUE((a + b).substitute([](const std::string&) { return a; }).same_as(2 * a));
}

TEST(Dim, CoefficientsOfASymbol) {
  EXPECT_TRUE((3 * a + b).coefficient_of(a)->same_as(3));
  EXPECT_TRUE((a * b + 2 * a + 5).coefficient_of(a)->same_as(b + 2));
  EXPECT_TRUE(b.coefficient_of(a)->same_as(0));
  EXPECT_FALSE((a * a).coefficient_of(a).has_value());
  EXPECT_FALSE(((a + 1) / 2).coefficient_of(a).has_value());
  EXPECT_TRUE(((b + 1) / 2 + a).coefficient_of(a)->same_as(1));
  EXPECT_TRUE(((a + 1) / 2).depends_on(a));
  EXPECT_FALSE(((a + 1) / 2).depends_on(b));
  EXPECT_EQ((b * max(a, b)).symbols(), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace sinter
