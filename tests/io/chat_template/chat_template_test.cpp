#include "sinter/io/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"

namespace sinter {
namespace {

std::string render(const std::string& source, const std::string& context = "{}") {
  try {
    return ChatTemplate(source).render(context, {.work = 2'000'000, .output = 100'000});
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(render("a\nb {{ x.y }}"), "error: chat template, line 2: 'x' is undefined, and so has no 'y'");
  EXPECT_EQ(render("\n\n{% if %}"), "error: chat template, line 3: an expression is expected");
  EXPECT_EQ(render("{% for x in [1] %}"), "error: chat template, line 1: 'endfor' is missing");
  EXPECT_EQ(render("\n{{ 'a' | nope }}"), "error: chat template, line 2: there is no filter 'nope'");
  EXPECT_EQ(render("{{ raise_exception('no such role') }}"), "error: chat template, line 1: no such role");
  EXPECT_EQ(render("{{ 1 +  }}").substr(0, 6), "error:");
  EXPECT_EQ(render("{{ 'a' "), "error: chat template, line 1: a tag has no end");
  EXPECT_EQ(render("{% endif %}").substr(0, 6), "error:");
  EXPECT_EQ(render("{{ [1].append(2) }}").substr(0, 6), "error:");  // values do not change
  EXPECT_EQ(render("{% break %}"), "error: chat template, line 1: 'break' outside a loop");
  EXPECT_EQ(render("x", "[]").substr(0, 6), "error:");
  EXPECT_EQ(render("x", "{").substr(0, 6), "error:");
  EXPECT_EQ(render("\xFF").substr(0, 6), "error:");
}

TEST(ChatTemplate, HostileTemplatesEndInErrors) {
  EXPECT_NE(render("{% for i in range(10000000000) %}{% endfor %}").find("too much work"), std::string::npos);
  EXPECT_NE(render("{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}").find("error"),
            std::string::npos);
  EXPECT_NE(
      render("{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}")
          .find("work"),
      std::string::npos);
  EXPECT_NE(render("{{ 'a' * 99999999999 }}").find("work"), std::string::npos);
  EXPECT_NE(render("{{ 9 ** 99 }}").find("too large"), std::string::npos);
  EXPECT_NE(render("{{ 1 // 0 }}").find("division by zero"), std::string::npos);
  EXPECT_NE(
      render("{% for i in range(5000) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}").find("writes more"),
      std::string::npos);
  EXPECT_NE(render("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}").find("too deeply"), std::string::npos);
  EXPECT_NE(render("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}").find("too deeply"),
            std::string::npos);
  std::string sum = "{{ 1";
  for (int i = 0; i < 100'000; ++i) sum += " + 1";
  EXPECT_NE(render(sum + " }}").find("too long"), std::string::npos);
  // Cycles and long chains of values are let go without recursion.
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}ok"), "ok");
  EXPECT_NE(render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}").find("nested too deeply"),
            std::string::npos);
  EXPECT_EQ(render("{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}ok"),
            "ok");
  EXPECT_NE(
      render(
          "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}")
          .find("work"),
      std::string::npos);
  // `loop` kept beyond its loop.
  EXPECT_NE(
      render("{% set ns = namespace() %}{% for i in [1] recursive %}{% set ns.l = loop %}{% endfor %}{{ ns.l([2]) }}")
          .find("after the loop"),
      std::string::npos);
}

TEST(ChatTemplate, TimeIsNow) { EXPECT_EQ(render("{{ strftime_now('%Y') | length }}"), "4"); }

}  // namespace
}  // namespace sinter
