#include "sinter/base/table.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"

namespace sinter {
namespace {

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table table({"kernel", "time", "gain", "note"});
  table.row("softmax", fixed(1.5, 2) + " ms", "2×", "ok");
  table.row("k3_add", fixed(12.125, 2) + " ms", "-", "1B Llama").row("x", "", "10.5×");
  EXPECT_EQ(table.text(),
            "kernel       time   gain  note\n"
            "-------  --------  -----  --------\n"
            "softmax   1.50 ms     2×  ok\n"
            "k3_add   12.12 ms      -  1B Llama\n"
            "x                  10.5×\n");
}

TEST(Table, WhatCountsAsANumber) {
  auto right_aligned = [](const std::string& cell) {
    Table table({"a long heading", "b"});
    table.row(cell, "b");
    return table.text().find("\n ") != std::string::npos;
  };
  for (auto cell : {"1", "-1.5", "+3", "1e-05", "2.5e3 s", "1,024", "98%", "310 GB/s", "nan", "-inf"})
    EXPECT_TRUE(right_aligned(cell)) << cell;
  for (auto cell : {"x1", "-", "1B Llama", "3 of 4", "128x256", "k3", "v"}) EXPECT_FALSE(right_aligned(cell)) << cell;
}

TEST(Table, TakesNumbersAndRejectsTooManyCells) {
  Table table({"n", "v"});
  table.row(7, 0.5);
  EXPECT_EQ(table.text(), "n    v\n-  ---\n7  0.5\n");
  EXPECT_THROW(table.row(1, 2, 3), Error);
  EXPECT_EQ(fixed(-0.126, 2), "-0.13");
}

}  // namespace
}  // namespace sinter
