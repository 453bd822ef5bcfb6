// The page that explains a function.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sinter/base/xml.h"
#include "sinter/capture/explain_html.h"
#include "sinter/engine/report.h"
#include "tests/capture/branched.h"

namespace sinter {
namespace {

// What is wrong with the tags of a page: each is closed in its turn, and no `<` stands for itself. Empty: nothing.
std::string fault_of(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = page.find('<', at)) != std::string::npos;) {
    size_t end = at + 1;
    for (char quote = 0; end < page.size() && (quote || page[end] != '>'); ++end)
      if (quote ? page[end] == quote : page[end] == '"') quote = quote ? 0 : '"';
    if (end >= page.size()) return "a tag has no end: " + page.substr(at, 60);
    std::string tag = page.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with("!doctype")) continue;
    bool closes = tag.starts_with("/");
    size_t begin = closes ? 1 : 0, stop = begin;
    while (stop < tag.size() && std::isalnum(static_cast<unsigned char>(tag[stop]))) ++stop;
    std::string name = tag.substr(begin, stop - begin);
    if (name.empty()) return "not a tag: <" + tag.substr(0, 60) + ">";
    if (closes) {
      if (open.empty() || open.back() != name)
        return format("</{}> where <{}> is open", name, open.empty() ? "" : open.back());
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
      if (name == "script" || name == "style") at = page.find("</" + name, at);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

TEST(FaultOf, FindsFaults) {
  EXPECT_EQ(fault_of("<p>a &lt; b<br /></p><style>a > b</style>"), "");
  for (auto* page : {"<p>", "<p><b></p></b>", "<p>a < b</p>", "</p>", "<p title=\"x></p>"})
    EXPECT_NE(fault_of(page), "") << page;
}

const PlanReport& report_at(const Explanation& told, size_t program = 0, size_t graph = 0) {
  return *told.programs.at(program).reports.at(graph);
}

Tensor chain(Tensor x, const Tensor& w) {
  for (int i = 0; i < 4; ++i) x = softmax(x.mm(w), -1) + cumsum(x, 0);
  return x;
}

Explanation told_of_branched() {
  auto f = compile(branched, {.dynamic = Dynamic::kFalse, .name = "branched<\"T\" & 'U'>"});
  f(-ones({4}));
  f(ones({6}));
  return compiler::explain(f, ones({4}));
}

TEST(ExplainHtml, IsWellFormedAndEscaped) {
  Explanation told = told_of_branched();
  std::string page = told.html();
  EXPECT_EQ(fault_of(page), "");
  EXPECT_TRUE(has(page, "branched&lt;&#34;T&#34; &amp; &#39;U&#39;&gt;"));
  EXPECT_EQ(page.find("branched<"), std::string::npos);
  for (auto* outside : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_EQ(fault_of(Explanation{}.html()), "");
}

TEST(ExplainHtml, ShowsBreaksAndRecompilesWithTheirReasons) {
  Explanation told = told_of_branched();
  std::string page = told.html();
  for (auto& part :
       {break_line, xml_escape(told.programs[0].breaks.at(0).advice), std::string("argument 0.size(0) was 4, now 6"),
        std::string("had an answer that was not seen before"), std::string("1 recompile<"),
        std::string("argument 0 == f32, rank 1, cpu")})
    EXPECT_TRUE(has(page, part));
}

TEST(ExplainHtml, HasEveryTextOnce) {
  Explanation told = told_of_branched();
  std::string page = told.html();
  std::set<std::string> codes;
  size_t all = 0;
  for (auto& program : told.programs)
    for (auto& report : program.reports)
      for (auto& text : report->texts) {
        codes.insert(text.code);
        ++all;
      }
  EXPECT_LT(codes.size(), all) << "programs share texts";
  for (auto& code : codes) EXPECT_EQ(count_of(page, xml_escape(code)), 1);
}

TEST(ExplainHtml, HasTheNumbersOfTheJson) {
  Explanation told = compiler::explain(chain, wave({64, 64}), wave({64, 64}));
  std::string page = told.html();
  auto json = nlohmann::json::parse(told.json());
  ASSERT_EQ(json.at("captures").size(), 1u);
  EXPECT_EQ(json["captures"][0]["kind"], "first");
  EXPECT_EQ(json["captures"][0]["seconds"], told.captures[0].seconds);
  EXPECT_EQ(json["captures"][0]["stages"]["capture"], told.captures[0].stages.capture);
  auto& report = json["programs"][0]["graphs"][0]["report"];
  EXPECT_TRUE(has(page, seconds_text(json["captures"][0]["seconds"].get<double>())));
  EXPECT_TRUE(has(page, "<dd>" + bytes_text(report["total"]["read_bytes"].get<double>()) + "</dd>"));
  EXPECT_TRUE(has(page, "<dd>" + seconds_text(report["total"]["floor_seconds"].get<double>()) + "</dd>"));
  EXPECT_TRUE(has(page, "<dd>" + bytes_text(report["memory"]["arena_bytes"].get<double>()) + "</dd>"));
  ASSERT_EQ(report["texts"].size(), report_at(told).texts.size());
  for (auto& text : report["texts"]) EXPECT_TRUE(has(page, xml_escape(text["code"].get<std::string>())));
  for (auto& kernel : report["kernels"])
    EXPECT_TRUE(has(page, "<code>" + xml_escape(kernel["name"].get<std::string>()) + "</code>"));
  EXPECT_EQ(report["memory"]["values"].size(), report_at(told).values.size());
  EXPECT_EQ(report["graph"], report_at(told).graph);
}

TEST(ExplainHtml, ShowsTheBackwardAndPlansOfOthers) {
  Tensor w = wave({8, 8}).requires_grad_();
  std::string page =
      compiler::explain([](const Tensor& x, const Tensor& y) { return tanh(x.mm(y)).sum(); }, wave({4, 8}), w).html();
  EXPECT_TRUE(has(page, "Graph 0, backward"));
  auto eager = compile([](const Tensor& x) { return exp(x); }, {.backend = "eager"});
  page = compiler::explain(eager, wave({4})).html();
  EXPECT_EQ(fault_of(page), "");
  EXPECT_TRUE(has(page, "No kernels are planned"));
}

TEST(ExplainHtml, StaysSmallForManyLayers) {
  auto deep = [](Tensor x, const Tensor& w) {
    for (int i = 0; i < 96; ++i) x = layer_norm(x + gelu(x.mm(w)), {32});
    return x;
  };
  Explanation told = compiler::explain(deep, wave({8, 32}), wave({32, 32}));
  std::string page = told.html();
  EXPECT_EQ(fault_of(page), "");
  EXPECT_GE(report_at(told).kernels.size(), 96u);
  EXPECT_LT(count_of(page, "class=\"kernel\""), 12);
  EXPECT_TRUE(has(page, "×9"));
  EXPECT_LT(page.size(), 1'000'000u);
}

// --- SINTER_DEBUG, which is read once: in a process of its own -------------------------------------------------------

TEST(ExplainHtml, DISABLED_Child) {
  auto f = compile(branched, {.dynamic = Dynamic::kFalse, .name = "paged"});
  f(ones({4}));
  f(ones({6}));
}

TEST(ExplainHtml, IsWrittenForWhoDebugs) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("sinter_page_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  std::string self = fs::read_symlink("/proc/self/exe").string();
  std::string command = "SINTER_DEBUG=" + folder.string() + " " + self +
                        " --gtest_also_run_disabled_tests --gtest_filter='ExplainHtml.DISABLED_Child' >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::stringstream page;
  page << std::ifstream(folder / "paged.explain.html").rdbuf();
  EXPECT_EQ(fault_of(page.str()), "");
  EXPECT_TRUE(has(page.str(), "argument 0.size(0) was 4, now 6")) << "the page is that of the last capture";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sinter
