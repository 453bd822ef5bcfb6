#include "sinter/train/loss_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"

namespace sinter::train {

using json = nlohmann::ordered_json;

namespace {

constexpr const char *kHeldOutLoss = "held_out_loss", *kAccuracy = "held_out_accuracy", *kSkipped = "skipped";

// False for what is no line of ours. The record of a loss on what is held back has nothing else.
bool read_line(std::string_view text, StepRecord& record) {
  json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto read = [&](const char* name, auto& to) {
    if (!line.is_object() || !line.contains(name) || !line[name].is_number()) return false;
    to = line[name].get<std::remove_reference_t<decltype(to)>>();
    return true;
  };
  HeldOut held_out;
  if (!read("step", record.step)) return false;
  if (read(kHeldOutLoss, held_out.loss) && read(kAccuracy, held_out.accuracy)) {
    record.held_out = held_out;
    return true;
  }
  read("loss_scale", record.loss_scale);
  record.skipped = line.contains(kSkipped);
  return read("loss", record.loss) && read("lr", record.lr) && read("seconds", record.seconds) &&
         (record.skipped || read("grad_norm", record.grad_norm));
}

// The steps that a file tells of, with the text of its lines in `kept`.
std::vector<StepRecord> read_lines(const std::string& path, int64_t last_step, std::string& kept) {
  std::vector<StepRecord> steps;
  if (!std::filesystem::exists(path)) return steps;
  MappedFile file("train", path);
  std::string_view text = file.bytes();
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    StepRecord record;
    if (!read_line(text.substr(0, end), record) || record.step > last_step) break;
    kept += std::string(text.substr(0, end)) + "\n";
    if (!record.held_out)
      steps.push_back(record);
    else if (!steps.empty())
      steps.back().held_out = record.held_out;
  }
  return steps;
}

void write_whole(const std::string& path, const std::string& text) {
  PendingFile file("train", path);
  file.write(text);
  file.commit();
}

FileHandle open_trimmed(const std::string& path, int64_t last_step, std::vector<StepRecord>& steps) {
  std::string kept;
  steps = read_lines(path, last_step, kept);
  write_whole(path, kept);
  return FileHandle(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
}

}  // namespace

LossLog::LossLog(const std::string& path, int64_t last_step)
    : path_(path), file_(open_trimmed(path, last_step, steps_)) {
  check(file_.get() >= 0, "train: cannot write '{}': {}", path, std::strerror(errno));
}

std::string LossLog::append(const std::string& line) {
  const std::string text = line + "\n";
  // As a rule one write, so that a line is there or not.
  for (std::string_view left = text; !left.empty();) {
    ssize_t written = ::write(file_.get(), left.data(), left.size());
    check(written > 0 || (written < 0 && errno == EINTR), "train: cannot write '{}': {}", path_, std::strerror(errno));
    if (written > 0) left.remove_prefix(size_t(written));
  }
  return line;
}

std::string LossLog::add(const StepRecord& r, const std::string& unit) {
  steps_.push_back(r);
  json line = {{"step", r.step}, {"loss", r.loss}, {"lr", r.lr}};
  if (!r.skipped) line["grad_norm"] = r.grad_norm;
  line["seconds"] = r.seconds;
  line[unit + "_per_s"] = r.units_per_s;
  if (r.loss_scale > 0) line["loss_scale"] = r.loss_scale;
  if (r.skipped) line[kSkipped] = true;
  return append(line.dump());
}

std::string LossLog::add(const HeldOut& held_out) {
  steps_.back().held_out = held_out;
  return append(
      json{{"step", steps_.back().step}, {kHeldOutLoss, held_out.loss}, {kAccuracy, held_out.accuracy}}.dump());
}

void LossLog::sync() { check(fsync(file_.get()) == 0, "train: cannot write '{}': {}", path_, std::strerror(errno)); }

void LossLog::write_csv(const std::string& path) const {
  std::string text = "step,loss,held_out_loss,held_out_accuracy,lr,grad_norm,seconds\n";
  for (auto& r : steps_) {
    std::string held_out = r.held_out ? format("{},{}", r.held_out->loss, r.held_out->accuracy) : ",";
    std::string norm = r.skipped ? "" : format("{}", r.grad_norm);
    text += format("{},{},{},{},{},{}\n", r.step, r.loss, held_out, r.lr, norm, r.seconds);
  }
  write_whole(path, text);
}

}  // namespace sinter::train
