// The container: what is written is read, and damage is noticed.
#include "sinter/package/package_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "sinter/base/error.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

class PackageFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.file("a.sinter");
    std::ofstream(directory_.file("beside"), std::ios::binary) << std::string(10000, 'w');
    PackageWriter writer(path_);
    writer.add("first", "some text");
    writer.add("empty", "");
    writer.add_file("weights", directory_.file("beside"));
    writer.finish();
  }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }
  // What a reader that looks at everything says; empty: all is as it was.
  std::string problem() const {
    try {
      PackageFile file(path_);
      file.verify();
      if (file.read("first") != "some text" || file.read("weights") != std::string(10000, 'w')) return "wrong bytes";
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  }

  OwnDirectory directory_;
  std::string path_;
};

TEST_F(PackageFileTest, SectionsComeBack) {
  PackageFile file(path_);
  EXPECT_TRUE(PackageFile::is_package(path_));
  EXPECT_EQ(file.sections().size(), 3u);
  EXPECT_EQ(file.read("first"), "some text");
  EXPECT_EQ(file.read("empty"), "");
  EXPECT_EQ(file.read("weights"), std::string(10000, 'w'));
  EXPECT_EQ(file.find("weights")->offset % 4096, 0u);
  EXPECT_EQ(file.find("nothing"), nullptr);
  EXPECT_THROW(file.read("nothing"), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 2);  // no temporary file is left
}

TEST_F(PackageFileTest, OtherFilesAreToldApart) {
  EXPECT_FALSE(PackageFile::is_package(directory_.file("beside")));
  EXPECT_FALSE(PackageFile::is_package(directory_.file("nothing")));
  EXPECT_THROW(PackageFile(directory_.file("beside")), Error);
  EXPECT_THROW(PackageFile(directory_.file("nothing")), Error);
  EXPECT_THROW(PackageFile(directory_.path().string()), Error);
  std::string all = bytes();
  all[8] = 9;  // the version
  write(all);
  EXPECT_NE(problem().find("version 9"), std::string::npos) << problem();
}

TEST_F(PackageFileTest, EveryTruncationIsNoticed) {
  std::string all = bytes();
  std::mt19937 draw(1);
  for (int i = 0; i < 200; ++i) {
    write(all.substr(0, draw() % all.size()));
    EXPECT_FALSE(problem().empty());
  }
}

TEST_F(PackageFileTest, EveryFlippedByteIsNoticedOrMeansNothing) {
  std::string all = bytes();
  PackageFile file(path_);
  auto in_section = [&](size_t at) {
    for (auto& s : file.sections())
      if (at >= s.offset && at < s.offset + s.size) return true;
    return false;
  };
  std::mt19937 draw(2);
  for (int i = 0; i < 1000; ++i) {
    size_t at = draw() % all.size();
    std::string changed = all;
    changed[at] = char(changed[at] ^ (1 + draw() % 255));
    write(changed);
    if (in_section(at))
      EXPECT_NE(problem().find("damaged"), std::string::npos) << at;
    else
      EXPECT_NE(problem(), "wrong bytes") << at;
  }
}

}  // namespace
}  // namespace sinter
