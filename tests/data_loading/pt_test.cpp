// Files of torch.save. tests/data/pt was written by PyTorch 2.11: a checkpoint with a state dict and plain data, and a whole
// module, which is no plain data.
#include "sinter/data/pt.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "sinter/data/zip.h"
#include "tests/data_loading/corrupt.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::data {
namespace {

const std::string kCheckpoint = SINTER_TEST_DATA "/pt/checkpoint.pt";

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

class PtFiles : public ::testing::Test {
 protected:
  ~PtFiles() override { close(file_); }
  // The name of a file with these bytes, until the next one; in memory, since there are thousands.
  std::string with(std::string_view bytes) {
    EXPECT_TRUE(ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
    return "/proc/self/fd/" + std::to_string(file_);
  }
  // An archive with this program, and 8 bytes as the memory "0".
  std::string of_program(const std::string& program) {
    const std::string path = own_.file("x.pt");
    PendingFile file("pt", path);
    ZipWriter archive(file);
    archive.add("x/data.pkl", program, false);
    archive.add("x/data/0", std::string(8, '\1'), false);
    archive.finish();
    file.commit();
    return path;
  }
  std::string error_of_program(const std::string& program) {
    return message_of([&] { load_pt(of_program(program)); });
  }

  const int file_ = memfd_create("x.pt", MFD_CLOEXEC);
  OwnDirectory own_;
};

TEST_F(PtFiles, ReadsWhatTorchHasWritten) {
  PtValue all = load_pt(kCheckpoint);
  EXPECT_EQ(all.at("epoch").as<int64_t>(), 300);
  EXPECT_EQ(all.at("large").as<int64_t>(), -(int64_t(1) << 40));
  EXPECT_EQ(all.at("rate").as<double>(), 0.5);
  EXPECT_EQ(all.at("names").as<PtValue::List>().at(1).as<std::string>(), "b");
  EXPECT_TRUE(all.at("pair").as<PtValue::List>().at(0).as<bool>());
  EXPECT_TRUE(all.at("pair").as<PtValue::List>().at(1).is<std::monostate>());
  EXPECT_FALSE(all.contains("nothing"));
  EXPECT_THROW(all.at("nothing"), Error);
  EXPECT_THROW(all.at("epoch").as<double>(), Error);
  EXPECT_EQ(all.at("columns").as<Tensor>().to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(all.at("tail").as<Tensor>().to_vector<int64_t>(), (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(all.at("tail").as<Tensor>().is_alias_of(all.at("columns").as<Tensor>()));
  EXPECT_EQ(all.at("half").as<Tensor>().dtype(), kBFloat16);
  EXPECT_EQ(all.at("half").as<Tensor>().to_vector<float>(), (std::vector<float>{1.5, -2}));
  EXPECT_EQ(all.at("mask").as<Tensor>().dtype(), kBool);
  EXPECT_EQ(all.at("parameter").as<Tensor>().item<float>(), 2);
  EXPECT_EQ(all.at("empty").as<Tensor>().sizes(), (Shape{0, 3}));
}

TEST_F(PtFiles, GivesTheTensorsByName) {
  NamedTensors tensors = load_pt_tensors(kCheckpoint);
  ASSERT_GE(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "model.weight");
  EXPECT_EQ(tensors[0].second.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(tensors[1].first, "model.bias");
}

TEST_F(PtFiles, RefusesWhatIsNoPlainData) {
  std::string message = message_of([] { load_pt(SINTER_TEST_DATA "/pt/module.pt"); });
  EXPECT_NE(message.find("torch.nn.modules.linear.Linear"), std::string::npos) << message;
  EXPECT_NE(error_of_program("cos\nsystem\n(X\x02\0\0\0lstR.").find("os.system"), std::string::npos);
  EXPECT_NE(error_of_program("i").find("step 105"), std::string::npos);
  EXPECT_NE(message_of([&] { load_pt(with("no archive")); }).find("is not a ZIP archive"), std::string::npos);
}

TEST_F(PtFiles, RefusesLiesAndNesting) {
  using namespace std::string_literals;
  EXPECT_NE(error_of_program("]q\0h\0a."s).find("nested too deeply"), std::string::npos);  // a list in itself
  EXPECT_NE(error_of_program(std::string(1000, ']') + std::string(999, 'a') + ".").find("nested too deeply"),
            std::string::npos);
  // Lists of the list before, twice each, thirty times over.
  std::string doubling = "]q\0"s;
  for (char i = 1; i < 31; ++i) doubling += "]q"s + i + "(h"s + char(i - 1) + "h"s + char(i - 1) + "e"s;
  EXPECT_NE(error_of_program(doubling + ".").find("too many values"), std::string::npos);
  // Two f32 in memory, of which tensors ask for others.
  auto tensor = [](int count, int offset, int size, int stride) {
    std::string storage = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"s + "0X\3\0\0\0cpuK"s + char(count) + "tQ"s;
    return "ctorch._utils\n_rebuild_tensor_v2\n("s + storage + "K" + char(offset) + "K"s + char(size) + "\x85K"s +
           char(stride) + "\x85tR."s;
  };
  EXPECT_EQ(load_pt(of_program(tensor(2, 0, 2, 1))).as<Tensor>().sizes(), (Shape{2}));
  EXPECT_EQ(load_pt(of_program(tensor(2, 1, 5, 0))).as<Tensor>().sizes(), (Shape{5}));
  EXPECT_NE(error_of_program(tensor(2, 0, 3, 1)).find("outside its memory"), std::string::npos);
  EXPECT_NE(error_of_program(tensor(2, 1, 2, 1)).find("outside its memory"), std::string::npos);
  EXPECT_NE(error_of_program(tensor(3, 0, 2, 1)).find("another size"), std::string::npos);
}

TEST_F(PtFiles, DamageIsAnErrorAndNothingElse) {
  auto load = [&](const std::string& damaged) { load_pt(with(damaged)); };
  EXPECT_GT(count_errors(contents_of(kCheckpoint), load), 1000);
}

// Changes that the checksums of the archive would catch, under new checksums.
TEST_F(PtFiles, DamageToTheProgramIsAnErrorAndNothingElse) {
  const std::string bytes = contents_of(kCheckpoint);
  ZipReader archive(bytes, kCheckpoint);
  std::string program;
  for (auto& entry : archive.entries())
    if (entry.name.ends_with("/data.pkl")) program = unpacked(archive, entry);
  ASSERT_FALSE(program.empty());
  int errors = 0;
  for (size_t i = 0; i < program.size(); i += 2) {
    std::string damaged = program;
    damaged[i] = char(damaged[i] ^ 0x15);
    try {
      load_pt(of_program(damaged));
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

}  // namespace
}  // namespace sinter::data
