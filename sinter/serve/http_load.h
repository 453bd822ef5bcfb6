#pragma once
// Asks a server for texts, as many clients would, and tells how long they took. Any server of OpenAI's API.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinter::serve {

struct LoadOptions {
  std::string url;                   // http://host:port
  std::string key = {}, model = {};  // empty: none; the first that the server has
  int64_t requests = 64;
  int64_t users = 0;  // each asks again as soon as it has its answer; 0: requests come by themselves,
  double rate = 1;    // so many a second, at random times, whether or not others are answered
  std::vector<int64_t> prompts = {128};    // tokens of a prompt, one of these
  std::vector<int64_t> new_tokens = {64};  // and of an answer
  uint64_t seed = 0;
  double timeout_s = 600;
};

// Of one request; times in seconds.
struct LoadAnswer {
  int status = 0;      // 0: the connection broke
  int64_t tokens = 0;  // as the server counts
  double first = 0, whole = 0;
  std::vector<double> gaps = {};  // between pieces of the answer
  bool is_answered() const { return status == 200 && tokens > 0; }
  // The mean from token to token, without the first.
  std::optional<double> per_token() const {
    return tokens > 1 ? std::optional((whole - first) / double(tokens - 1)) : std::nullopt;
  }
};

struct LoadResult {
  std::vector<LoadAnswer> answers;
  double seconds = 0;
};

// An Error where there is no such server.
LoadResult run_load(const LoadOptions& options);

}  // namespace sinter::serve
