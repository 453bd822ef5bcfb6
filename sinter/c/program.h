#pragma once
// A program behind the C interface: a graph, or a file with its weights, compiled.
#include <memory>
#include <span>
#include <string>

#include "sinter/c/sinter.h"
#include "sinter/capture/options.h"

struct SinterProgram {
  virtual ~SinterProgram() = default;
  virtual size_t input_count() const = 0;
  virtual size_t result_count() const = 0;
  virtual const char* input_name(size_t) const { return ""; }
  virtual void prepare(std::span<const SinterValue> inputs) = 0;
  virtual void run(std::span<const SinterValue> inputs, std::span<SinterValue> results) = 0;
};

namespace sinter::c {

std::unique_ptr<SinterProgram> load_program(const std::string& path, const CompileOptions& options);
std::unique_ptr<SinterProgram> read_program(std::string_view json, const CompileOptions& options);

// Of the names and texts of the C interface.
CompileOptions options_of(std::span<const SinterOption> given);

}  // namespace sinter::c
