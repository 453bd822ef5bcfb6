// The reference of all public functions as Markdown: what the headers say, and what the registry knows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/cli/functions.h"
#include "sinter/cli/op_lookup.h"

namespace sinter::cli {

namespace {

using Group = std::vector<const PublicFunction*>;  // under one comment

// Text of a comment, so that Markdown shows what the header has. Code between backticks is left alone.
std::string escaped(std::string_view text) {
  std::string out;
  bool code = false;
  for (char c : text) {
    if (c == '`') code = !code;
    if (!code && (c == '*' || c == '<' || c == '[' || c == ']')) out += '\\';
    out += c;
  }
  return out;
}

// A header's opening comment: lines that are set in are an example.
std::string page_intro(std::string_view summary) {
  std::string out;
  bool example = false;
  for (size_t at = 0; at < summary.size();) {
    size_t end = std::min(summary.find('\n', at), summary.size());
    std::string_view line = summary.substr(at, end - at);
    bool set_in = line.starts_with("  ");
    if (set_in != example) out += set_in ? "```cpp\n" : "```\n";
    example = set_in;
    out += set_in ? std::string(line.substr(2)) : escaped(line);
    out += '\n';
    at = end + 1;
  }
  return out + (example ? "```\n" : "");
}

std::string family_of(std::string_view header) { return std::filesystem::path(header).stem().string(); }

std::string anchor_of(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), ':', '-');
  return out;
}

// The names of a group, each once, in their order.
std::vector<std::string> names_of(const Group& group) {
  std::vector<std::string> names;
  for (auto* f : group)
    if (std::find(names.begin(), names.end(), f->name) == names.end()) names.push_back(f->name);
  return names;
}

std::string joined(const std::vector<std::string>& names, const char* quote) {
  std::string out;
  for (auto& name : names) out += (out.empty() ? "" : ", ") + (quote + name + quote);
  return out;
}

const Op* op_of(std::string_view function) {
  std::string name(function);
  if (size_t at = name.find("::"); at != name.npos) name.replace(at, 2, "_");
  return find_op(name);
}

// What is known of one function beside its declaration; empty where that is nothing.
std::string facts_of(const std::string& name, const Group& group) {
  bool is_method = false, in_place = false;
  for (auto* f : group) {
    if (f->name != name) continue;
    is_method |= f->is_method;
    in_place |= f->in_place;
  }
  std::string out = in_place && is_method ? "method, also in place" : in_place ? "method in place" : is_method ? "method" : "";
  if (auto* op = op_of(name)) out += (out.empty() ? "" : "; ") + summary_of(*op);
  return out;
}

std::string text_of(const Group& group, std::set<std::string>& anchors) {
  auto names = names_of(group);
  std::string out;
  for (auto& name : names)
    if (anchors.insert(anchor_of(name)).second) out += "<a id=\"" + anchor_of(name) + "\"></a>\n";
  out += "\n### " + joined(names, "") + "\n\n";
  if (auto comment = comment_of(*group[0]); !comment.empty()) out += escaped(comment) + "\n\n";
  out += "```cpp\n";
  for (auto* f : group) out += std::string(f->signature) + ";\n";
  bool first = true;
  for (auto& name : names) {
    std::string_view example = example_of(name);
    if (example.empty()) continue;
    out += (first ? "\n" : "") + std::string(example) + ";\n";
    first = false;
  }
  out += "```\n\n";
  // Names of which the same is known share a line.
  std::vector<std::pair<std::string, std::vector<std::string>>> facts;
  for (auto& name : names) {
    std::string known = facts_of(name, group);
    if (known.empty()) continue;
    auto same = std::find_if(facts.begin(), facts.end(), [&](auto& entry) { return entry.first == known; });
    if (same == facts.end()) same = facts.insert(facts.end(), {known, {}});
    same->second.push_back(name);
  }
  for (auto& [known, of] : facts) out += "- " + joined(of, "`") + ": " + escaped(known) + "\n";
  return out + (facts.empty() ? "" : "\n");
}

std::string page_of(const PublicHeader& header) {
  std::string out = "# " + family_of(header.path) + "\n\n`#include <" + header.path + ">`\n\n" + page_intro(header.summary) + "\n";
  std::vector<Group> groups;
  for (auto& f : public_functions()) {
    if (std::string_view(f.header) != header.path) continue;
    if (!f.follows || groups.empty()) groups.emplace_back();
    groups.back().push_back(&f);
  }
  std::set<std::string> anchors;
  std::string_view section;
  for (auto& group : groups) {
    if (section != group[0]->section) {
      section = group[0]->section;
      // The first words are the title.
      size_t end = section.find_first_of(".:");
      out += "## " + std::string(section.substr(0, end)) + "\n\n";
      if (end < section.size() - 1) out += escaped(section.substr(end + 2)) + "\n\n";
    }
    out += text_of(group, anchors);
  }
  return out;
}

// The first sentence of a comment, on one line.
std::string first_sentence(std::string_view comment) {
  std::string line(comment.substr(0, comment.find(". ")));
  line = line.substr(0, line.find(".\n"));
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (line.ends_with('.') && !line.ends_with("..")) line.pop_back();
  return line;
}

std::string index_page() {
  std::string out =
      "# Functions\n\n"
      "Made from the public headers by `make reference`. A `TensorArg` is a tensor or a number, a `Dim` a size that may be\n"
      "symbolic. Where a function is a method, its first parameter is the tensor: `softmax(x, -1)`, `x.softmax(-1)`; in place\n"
      "means `x.relu_()`. Operators are those of C++, with `/` and `%` as in PyTorch. `sinter ops NAME` prints an entry.\n\n"
      "Below the declarations stand examples, which the tests compile and run. In them `x` and `y` are [3, 4], `p` the same of\n"
      "positive numbers, `u` of numbers between 0 and 1, `n` of integers, `k` of positions below 3, `z` of complex numbers, `mask`\n"
      "and `other` of truth values; `v` is [4], `w` [3], `m` [4, 4], `s` [4, 4] and positive-definite, `b` [2, 3, 4], `c` [2, 4, 5],\n"
      "`rows` and `labels` positions; `sequence`, `image` and `volume` are batches with channels, `weight`, `table`, `maps`,\n"
      "`signal` and `directions` what their functions take.\n\n"
      "Pages: ";
  bool first = true;
  std::map<std::string, const PublicFunction*> by_name;
  for (auto& f : public_functions()) by_name.emplace(f.name, &f);
  for (auto& header : public_headers()) {
    out += std::string(first ? "" : ", ") + "[" + family_of(header.path) + "](" + family_of(header.path) + ".md)";
    first = false;
  }
  out += "\n\n";
  for (auto& [name, f] : by_name) {
    std::string says = first_sentence(comment_of(*f));
    out += "- [" + name + "](" + family_of(f->header) + ".md#" + anchor_of(name) + ")" +
           (says.empty() ? "" : ": " + escaped(says)) + "\n";
  }
  return out;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  check(bool(file.flush()), "cannot write {}", path.string());
}

}  // namespace

void write_reference(const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (auto& header : public_headers())
    write(std::filesystem::path(folder) / (family_of(header.path) + ".md"), page_of(header));
  write(std::filesystem::path(folder) / "README.md", index_page());
}

}  // namespace sinter::cli
