// The index arithmetic of products on tensor cores, compiled for the host: where pieces of rows lie in shared memory, in which
// order tiles come, and how sums go from where the tensor cores leave them to runs of neighbours.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tile_on_host.h"

namespace {

using namespace k;

// A row's pieces keep to their row, and eight rows' pieces of one number touch all banks.
TEST(CudaTileIndex, PiecesOfRows) {
  std::set<unsigned> all;
  for (int row = 0; row < 64; ++row)
    for (int piece = 0; piece < 8; ++piece) {
      unsigned at = tile::place(row, piece);
      EXPECT_EQ(at / 128, unsigned(row));
      EXPECT_EQ(at % 16, 0u);
      EXPECT_TRUE(all.insert(at).second);
    }
  for (int piece = 0; piece < 8; ++piece) {
    std::set<unsigned> banks;
    for (int row = 8; row < 16; ++row) banks.insert(tile::place(row, piece) % 128);
    EXPECT_EQ(banks.size(), 8u);
  }
}

TEST(CudaTileIndex, EveryTileComesOnce) {
  for (int rows : {1, 3, 4, 8, 9, 20})
    for (int columns : {1, 5, 32}) {
      std::set<std::pair<int, int>> seen;
      for (int tile = 0; tile < rows * columns; ++tile) {
        tile::Spot spot(tile, rows, columns);
        EXPECT_TRUE(spot.row >= 0 && spot.row < rows && spot.column >= 0 && spot.column < columns);
        EXPECT_TRUE(seen.insert({spot.row, spot.column}).second) << rows << " " << columns << " " << tile;
      }
    }
}

// Collects what it is given.
struct Shape {
  static constexpr int parts = 2, lanes = 8;
  static inline std::vector<std::vector<float>> got;
  static void finish(int, const float* v, int apart, int tile, int row, int column) {
    EXPECT_EQ(tile, 5);
    for (int part = 0; part < parts; ++part)
      for (int i = 0; i < lanes; ++i) got.push_back({float(part), float(row), float(column + i), v[part * apart + i]});
  }
};

TEST(CudaTileIndex, SumsBecomeRunsOfNeighbours) {
  using Finisher = tile::Finish<Shape, 16>;
  std::vector<float> own(Finisher::kFloats, -1);
  auto value = [](int part, int row, int column) { return float(part * 10000 + row * 100 + column); };
  // As the instructions leave them: of eight columns a thread has two in each of two rows.
  for (unsigned lane = 0; lane < 32; ++lane) {
    threadIdx.x = lane;
    int row = int(lane / 4), column = int(lane % 4 * 2);
    for (int part = 0; part < 2; ++part)
      for (int group = 0; group < 2; ++group) {
        int c = group * 8 + column;
        float sums[] = {value(part, row, c), value(part, row, c + 1), value(part, row + 8, c), value(part, row + 8, c + 1)};
        Finisher::put(own.data(), part, group, sums);
      }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    threadIdx.x = lane;
    Finisher::take(0, own.data(), 5, 48, 64);
  }
  std::set<std::vector<float>> different(Shape::got.begin(), Shape::got.end());
  EXPECT_EQ(different.size(), size_t(2 * 16 * 16));
  for (auto& v : Shape::got) EXPECT_EQ(v[3], value(int(v[0]), int(v[1]) - 48, int(v[2]) - 64));
}

}  // namespace
