#include "op_headers.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_if_changed(const std::string& path, const std::string& text) {
  if (std::filesystem::exists(path) && read_file(path) == text) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string tidy(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool space = std::isspace(static_cast<unsigned char>(c));
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_operand(const Parameter& parameter) { return parameter.type == "const TensorArg&"; }

namespace {

// What a comment says: the line without its slashes, and without the space behind them.
std::string comment_text(std::string_view line) {
  line.remove_prefix(2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return std::string(line.substr(0, line.find_last_not_of(" \r") + 1));
}

std::string joined(const std::vector<std::string>& lines, size_t first) {
  std::string out;
  for (size_t i = first; i < lines.size(); ++i) out += (i > first ? "\n" : "") + lines[i];
  return out;
}

// Walks through an exported namespace. A body ends a statement as a semicolon does.
class StatementReader {
 public:
  // Begins behind the opening brace.
  StatementReader(std::string_view text, size_t at, std::vector<Statement>& out) : text_(text), at_(at), out_(out) {}

  void run() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      bool between = tidy(now_).empty(), comment = text_.substr(at_, 2) == "//";
      if (comment || (c == '#' && between)) {
        read_line(comment, between);
      } else if (c == '\n' && between) {
        if (++newlines_ == 2) end_of_block();
      } else if (c == '}' && depth_ == 0 && between) {
        if (scopes_.empty()) return;
        scopes_.pop_back();
        end_of_block();
        follows_ = false;
      } else if (c == '{' && depth_ == 0 && tidy(now_).starts_with("namespace ") && tidy(now_) != "namespace detail") {
        scopes_.push_back(tidy(now_).substr(10) + "::");
        now_.clear();
        newlines_ = 0;
      } else {
        read_code(c);
      }
    }
  }

 private:
  void read_line(bool comment, bool between) {
    size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    bool ends_statement = newlines_ == 0 && !out_.empty() && text_.substr(0, at_).find_last_of(";}") > text_.rfind('\n', at_);
    if (comment && between && ends_statement)
      out_.back().note = tidy(line.substr(2));
    else if (comment && between)
      block_.push_back(comment_text(line)), newlines_ = 0;
    at_ = between ? end - 1 : end;  // between statements empty lines count
    if (!between) now_ += ' ';
  }

  // A comment that an empty line follows is no statement's.
  void end_of_block() {
    if (!block_.empty() && block_[0].starts_with("--- ")) section_ = joined(block_, 0).substr(4);
    block_.clear();
    follows_ = false;
  }

  void read_code(char c) {
    if (c == '{' || c == '(') ++depth_;
    if (c == '}' || c == ')') --depth_;
    now_ += c;
    if (depth_ != 0 || (c != ';' && c != '}')) return;
    // Braces of a default or of a class are followed by more of the statement.
    size_t next = text_.find_first_not_of(" \n", at_ + 1);
    if (c == '}' && next != text_.npos && (text_[next] == ';' || text_[next] == ',' || text_[next] == ')')) return;
    bool has_section = !block_.empty() && block_[0].starts_with("--- ");
    if (has_section) section_ = block_[0].substr(4);
    Statement statement{.text = tidy(now_), .note = "", .comment = joined(block_, has_section), .section = section_,
                        .scope = "", .follows = follows_ && block_.empty()};
    for (auto& scope : scopes_) statement.scope += scope;
    out_.push_back(std::move(statement));
    now_.clear();
    block_.clear();
    newlines_ = 0;
    follows_ = true;
  }

  std::string_view text_;
  size_t at_;
  std::vector<Statement>& out_;
  int depth_ = 0, newlines_ = 0;
  bool follows_ = false;
  std::string now_, section_;
  std::vector<std::string> block_, scopes_;
};

// The pieces between commas that no bracket encloses.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  std::string now;
  int depth = 0;
  for (char c : text) {
    if (std::string_view("(<{[").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(")>}]").find(c) != std::string_view::npos) --depth;
    if (c == ',' && depth == 0) {
      out.push_back(tidy(now));
      now.clear();
    } else {
      now += c;
    }
  }
  if (!tidy(now).empty()) out.push_back(tidy(now));
  return out;
}

Parameter parse_parameter(const std::string& text) {
  size_t equals = text.find(" = ");
  std::string declared = text.substr(0, equals);
  size_t begin = declared.size();
  while (begin > 0 && is_word(declared[begin - 1])) --begin;
  return {.type = tidy(declared.substr(0, begin)),
          .name = declared.substr(begin),
          .standard = equals == text.npos ? "" : text.substr(equals + 3)};
}

// The length of "template <…>" or "requires …" at the head of a declaration.
size_t constraint_length(std::string_view text, std::string_view word) {
  size_t at = word.size();
  if (at < text.size() && text[at] == ' ') ++at;
  for (int depth = 0; at < text.size(); ++at) {
    if (text[at] == '<' || text[at] == '(') ++depth;
    if (text[at] == '>' || text[at] == ')') --depth;
    if (depth == 0 && text[at] == ' ') break;
  }
  return at;
}

// Whether the statement declares a function, and which.
bool parse(const Statement& statement, bool methods, Function& f) {
  std::string_view text = statement.text;
  for (std::string_view word : {"template", "requires"}) {
    if (!text.starts_with(word)) continue;
    size_t length = constraint_length(text, word);
    f.constraint += (f.constraint.empty() ? "" : " ") + std::string(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  if (text.starts_with("inline ")) text.remove_prefix(7);
  for (std::string_view other : {"class ", "struct ", "enum ", "using ", "namespace ", "constexpr "})
    if (text.starts_with(other)) return false;
  size_t open = text.find('('), close = open, begin = open;
  if (open == text.npos) return false;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  for (int depth = 0; close < text.size(); ++close) {
    if (text[close] == '(') ++depth;
    if (text[close] == ')' && --depth == 0) break;
  }
  f.statement = statement;
  f.result = tidy(text.substr(0, begin));
  f.name = text.substr(begin, open - begin);
  if (f.name.empty() || f.result.empty() || f.result.find("operator") != f.result.npos) return false;
  for (auto& piece : split(text.substr(open + 1, close - open - 1))) f.parameters.push_back(parse_parameter(piece));
  bool of_tensor = !f.parameters.empty() && (is_operand(f.parameters[0]) || f.parameters[0].type == "const Tensor&");
  f.is_method = methods && of_tensor && f.constraint.empty() && statement.scope.empty() &&
                statement.note.find("no method") == statement.note.npos;
  f.in_place = f.is_method && statement.note.find("in place too") != statement.note.npos;
  return true;
}

// The comment behind #pragma once.
std::string summary_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("//"))
      lines.push_back(comment_text(line));
    else if (line != "#pragma once")
      break;
  }
  return joined(lines, 0);
}

}  // namespace

Header read_header(const std::string& path) {
  constexpr std::string_view kOpening = "namespace sinter SINTER_API {";
  std::string text = read_file(path);
  Header header{.path = path, .summary = summary_of(text), .functions = {}, .borrowed = {}};
  bool methods = header.summary.find("No methods of Tensor") == header.summary.npos;
  std::vector<Statement> statements;
  for (size_t open = text.find(kOpening); open != text.npos; open = text.find(kOpening, open + 1))
    StatementReader(text, open + kOpening.size(), statements).run();
  bool below_function = false;
  for (auto& statement : statements) {
    Function f;
    bool is_function = parse(statement, methods, f);
    f.statement.follows = statement.follows && below_function;
    below_function = is_function;
    if (is_function) header.functions.push_back(std::move(f));
    if (statement.scope.empty() || !statement.text.starts_with("using sinter::")) continue;
    constexpr std::string_view kBorrowed = "sinter::";
    for (size_t at = 0; (at = statement.text.find(kBorrowed, at)) != std::string::npos;) {
      size_t end = at += kBorrowed.size();
      while (end < statement.text.size() && is_word(statement.text[end])) ++end;
      header.borrowed.push_back({statement.scope, statement.text.substr(at, end - at)});
    }
  }
  return header;
}
