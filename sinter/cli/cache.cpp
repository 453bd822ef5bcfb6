// `sinter cache`: what the store of compiled code holds, why something was not in it, and taking it elsewhere.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/commands.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/code_store.h"

namespace sinter::cli {

namespace {

using nlohmann::json;
using runtime::CodeStore;

struct Flags {
  bool json = false;
  std::string kind, file, key = "last";
};

CodeStore open_store() {
  CodeStore store(CodeStore::default_directory());
  check(!store.directory().empty(), "there is no cache directory; SINTER_CACHE_DIR may name one");
  return store;
}

void print(const json& report) {
  // Labels come from files: what is not UTF-8 in them must not end the report.
  std::cout << report.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

std::string kind_of(const CodeStore::Entry& entry) {
  return entry.problem.empty() ? std::string(entry.kind()) : "unusable: " + entry.problem;
}

std::string time_text(int64_t seconds) {
  std::time_t time = seconds;
  std::tm local{};
  char text[32];
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", localtime_r(&time, &local)) ? text : "";
}

void list(const Flags& flags) {
  json report = json::array();
  Table table({"kind", "size", "last use", "name"});
  for (auto& entry : open_store().entries()) {
    std::string kind = kind_of(entry);
    if (!flags.kind.empty() && kind != flags.kind) continue;
    table.row(kind, bytes_text(double(entry.size)), time_text(entry.last_use), entry.label);
    report.push_back({{"kind", kind},
                      {"bytes", entry.size},
                      {"last_use", entry.last_use},
                      {"name", entry.label},
                      {"key", entry.key},
                      {"file", entry.path}});
  }
  if (flags.json) return print(report);
  if (report.empty())
    std::cout << "the cache is empty\n";
  else
    std::cout << table.text();
}

void print_stats(const Flags& flags) {
  CodeStore store = open_store();
  struct Sum {
    uint64_t count = 0, bytes = 0;
  };
  std::map<std::string, Sum> kinds;
  Sum all;
  for (auto& entry : store.entries())
    for (Sum* sum : {&kinds[kind_of(entry)], &all}) {
      ++sum->count;
      sum->bytes += entry.size;
    }
  if (flags.json) {
    json by_kind = json::object();
    for (auto& [kind, sum] : kinds) by_kind[kind] = {{"entries", sum.count}, {"bytes", sum.bytes}};
    return print({{"directory", store.directory()},
                  {"entries", all.count},
                  {"bytes", all.bytes},
                  {"limit_bytes", store.limit()},
                  {"kinds", by_kind}});
  }
  Table table({"kind", "entries", "size"});
  for (auto& [kind, sum] : kinds) table.row(kind, sum.count, bytes_text(double(sum.bytes)));
  table.row("all", all.count, bytes_text(double(all.bytes)));
  std::cout << store.directory() << "\nlimit " << (store.limit() ? bytes_text(double(store.limit())) : "none") << "\n\n"
            << table.text();
}

// A key as it is typed: parts apart by semicolons or line breaks.
std::string parse_key(const std::string& text) {
  std::string key, part;
  auto finish = [&] {
    size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    if (begin != std::string::npos) key += part.substr(begin, end - begin + 1) + "\n";
    part.clear();
  };
  for (char c : text)
    if (c == ';' || c == '\n')
      finish();
    else
      part += c;
  finish();
  check(!runtime::key_part(key, "kind").empty(),
        "'{}' is no key: a key is 'kind=...; source=...; ...', as `sinter cache ls --json` shows them", text);
  return key;
}

void explain_key(const CodeStore& store, const Flags& flags) {
  std::string key = parse_key(flags.key);
  bool found = store.load(key).has_value();
  std::string reason = found ? "it is in the cache" : store.why_miss(key);
  if (flags.json) return print({{"key", key}, {"found", found}, {"reason", reason}});
  std::cout << reason << "\n";
}

void why(const Flags& flags) {
  CodeStore store = open_store();
  if (flags.key != "last") return explain_key(store, flags);
  auto misses = store.recent_misses();
  if (!misses.empty()) std::erase_if(misses, [run = misses.back().run](auto& miss) { return miss.run != run; });
  auto entries = store.entries();
  json report = json::array();
  std::string text;
  for (auto& miss : misses) {
    std::string reason = miss.problem.empty() ? CodeStore::differences(miss.key, entries)
                                              : "its entry could not be used: " + miss.problem;
    text += format("{}: {}\n", miss.label, reason);
    report.push_back({{"name", miss.label}, {"time", miss.time}, {"key", miss.key}, {"reason", reason}});
  }
  if (flags.json) return print(report);
  if (misses.empty())
    std::cout << "no run has missed anything since the cache was cleared\n";
  else
    std::cout << format("{} misses in the last run that had any ({})\n", misses.size(), time_text(misses.back().time))
              << text;
}

void say(const Flags& flags, const char* done, size_t entries) {
  if (flags.json) return print({{"entries", entries}});
  std::cout << done << " " << entries << (entries == 1 ? " entry\n" : " entries\n");
}

}  // namespace

void add_cache(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* cache = app.add_subcommand("cache", "The compiled kernels on disk: list, count, clear, take along, explain");
  cache->require_subcommand(1);
  auto add = [&](const char* name, const char* what, auto function) {
    auto* command = cache->add_subcommand(name, what);
    command->add_flag("--json", flags->json, "Print JSON instead of text");
    command->callback([flags, function] { function(*flags); });
    return command;
  };
  auto with_kind = [&](CLI::App* command) {
    command->add_option("--kind", flags->kind, "Only entries of this kind: cpu-code, cuda-code, autotune, ...");
    return command;
  };
  with_kind(add("ls", "List the entries, the last used first", list));
  add("stats", "Count entries and bytes by kind", print_stats);
  with_kind(add("clear", "Remove entries", [](const Flags& f) { say(f, "removed", open_store().clear(f.kind)); }));
  with_kind(add("export", "Write the entries into one file",
                [](const Flags& f) { say(f, "wrote", open_store().export_to(f.file, f.kind)); }))
      ->add_option("FILE", flags->file, "The file to write")
      ->required();
  add("import", "Add the entries of such a file",
      [](const Flags& f) { say(f, "added", open_store().import_from(f.file)); })
      ->add_option("FILE", flags->file, "The file to read: native code, to be trusted like a program")
      ->required();
  add("why", "Tell why entries were missed: which part of the key differs from the nearest entry", why)
      ->add_option("KEY", flags->key, "A key, 'kind=...; source=...; ...'; by default the misses of the last run");
  cache->footer(
      "Examples:\n"
      "  sinter cache stats\n"
      "  sinter cache export kernels.bin         then, on a machine of the same kind: sinter cache import kernels.bin\n"
      "  sinter cache why                        what the last run had to compile, and why\n"
      "The directory is SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else ~/.cache/sinter; SINTER_CACHE_LIMIT_MB is\n"
      "its limit (4096; 0: none).");
}

}  // namespace sinter::cli
