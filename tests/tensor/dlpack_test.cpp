#include "sinter/tensor/dlpack.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using namespace dlpack;

// A tensor as another library would hand it over; counts the calls of its deleter.
struct Foreign {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[2] = {2, 3}, strides[2] = {1, 2};
  int deleted = 0;
  DLManagedTensor managed{{data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 4},
                          this,
                          [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; }};

  std::string error() {
    return error_of([&] { from_dlpack(&managed); });
  }
};

TEST(DLPack, ExportKeepsTheMemoryAlive) {
  DLManagedTensor* managed = nullptr;
  BufferPtr buffer;
  {
    Tensor base = tensor({0, 1, 2, 3, 4, 5, 6, 7}, kBFloat16);
    buffer = base.impl().buffer;
    managed = to_dlpack(make_view(base, {2, 3}, {3, 1}, 2));
  }
  EXPECT_EQ(buffer.use_count(), 2u);
  const DLTensor& t = managed->dl_tensor;
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.ndim, 2);
  EXPECT_EQ(t.dtype.code, kDLBfloat);
  EXPECT_EQ(t.dtype.bits, 16);
  EXPECT_EQ(t.dtype.lanes, 1);
  EXPECT_EQ(t.shape[0], 2);
  EXPECT_EQ(t.shape[1], 3);
  EXPECT_EQ(t.strides[0], 3);
  EXPECT_EQ(t.byte_offset, 4u);
  EXPECT_EQ(t.data, buffer->data());
  managed->deleter(managed);
  EXPECT_EQ(buffer.use_count(), 1u);
}

TEST(DLPack, RoundTripOfEveryType) {
  for (int d = 0; d < kDTypeCount; ++d) {
    Tensor t = tensor({0, 1, 1, 0}, DType(d));
    Tensor view = make_view(t, {2, 2}, {1, 2}, 0);
    Tensor back = from_dlpack(to_dlpack(view));
    EXPECT_EQ(back.dtype(), DType(d));
    EXPECT_EQ(back.data_ptr(), t.data_ptr());
    EXPECT_EQ(back.strides(), view.strides());
    EXPECT_FALSE(back.is_contiguous());
    EXPECT_EQ(back.to_vector<int>(), (std::vector<int>{0, 1, 1, 0}));
    EXPECT_EQ(from_dlpack(to_dlpack(scalar_tensor(1, DType(d)))).item<int>(), 1);
    EXPECT_EQ(from_dlpack(to_dlpack(empty({0, 2}, DType(d)))).numel(), 0);
  }
}

TEST(DLPack, ImportBorrowsAndReleasesOnce) {
  Foreign foreign;
  {
    Tensor t = from_dlpack(&foreign.managed);
    EXPECT_EQ(t.data_ptr(), foreign.data + 1);
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 3, 5, 2, 4, 6}));
    Tensor copy = t;
    t = Tensor();
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPack, ImportWithoutStridesIsRowMajor) {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).numel(), 6);
}

TEST(DLPack, RefusesWhatItCannotHold) {
  auto refuse = [](auto change, const char* text) {
    Foreign foreign;
    change(foreign.managed.dl_tensor, foreign);
    EXPECT_NE(foreign.error().find(text), std::string::npos) << foreign.error();
    EXPECT_EQ(foreign.deleted, 1) << text;
  };
  refuse([](DLTensor& t, auto&) { t.dtype = {5, 32, 1}; }, "type code 5, 32 bits");
  refuse([](DLTensor& t, auto&) { t.dtype.lanes = 4; }, "4 lanes");
  refuse([](DLTensor& t, auto&) { t.dtype = {kDLUInt, 32, 1}; }, "not supported");
  refuse([](DLTensor& t, auto&) { t.device.device_type = 7; }, "device type 7");
  refuse([](DLTensor& t, auto&) { t.device.device_id = 4000; }, "4000");
  refuse([](DLTensor& t, auto&) { t.byte_offset = 2; }, "not aligned");
  refuse([](DLTensor& t, auto&) { t.data = nullptr; }, "null");
  refuse([](DLTensor& t, auto&) { t.ndim = -1; }, "dimensions");
  refuse([](DLTensor&, Foreign& f) { f.shape[0] = -2; }, "negative");
  refuse([](DLTensor&, Foreign& f) { f.strides[0] = -1; }, "negative");
  refuse([](DLTensor&, Foreign& f) { f.strides[1] = INT64_MAX; }, "overflow");
  EXPECT_THROW(from_dlpack(nullptr), Error);
}

}  // namespace
}  // namespace sinter
