#include "sinter/serve/grammar.h"

#include <gtest/gtest.h>

#include <random>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "tests/serve/served_whale.h"

namespace sinter::serve {
namespace {

using Json = nlohmann::ordered_json;

bool takes(const std::string& schema, const std::string& text) {
  auto grammar = Grammar::of_schema(schema);
  return grammar->may_end(grammar->after(grammar->begin(), text));
}

struct Case {
  const char* schema;
  std::vector<const char*> yes, no;
};

TEST(Grammar, TakesWhatTheSchemaAllows) {
  const Case cases[] = {
      {R"({})",
       {"1", "-0.5e+10", "\"a\"", "[]", "{}", "[1, \"b\",{\"c\":null}]", "true"},
       {"", "01", "1.", "tru", "[1,]", "{1:2}", "nul", "-"}},
      {R"({"type":"string"})",
       {R"("")", R"("a\"b")", R"("\u00e9")", "\"\xc3\xa9\"", R"("\\")"},
       {R"("a)", "\"a\nb\"", R"("\x")", R"("\ud800")", "a", R"("a"b)"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("abc")", R"("\n\n")", "\"\xc3\xa9\xc3\xa9\""},
       {R"("a")", R"("abcd")", "\"\xc3\xa9\""}},
      {R"({"type":"integer"})", {"0", "-7", "12"}, {"1.0", "01", "1e2", "--1"}},
      {R"({"type":"integer","minimum":5,"maximum":120})", {"5", "9", "10", "99", "120"}, {"4", "0", "121", "-5", "1"}},
      {R"({"type":"integer","exclusiveMinimum":-3,"exclusiveMaximum":3})", {"-2", "0", "2"}, {"-3", "3", "10", "-10"}},
      {R"({"type":"number","minimum":0.5,"exclusiveMaximum":2})",
       {"0.5", "1", "1.999", "0.75"},
       {"0.49", "2", "2.0", "-1", "10", "1e0"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "1"}},
      {R"({"type":["string","null"]})", {"null", "\"x\""}, {"1"}},
      {R"({"const":{"a":1}})", {R"({"a":1})"}, {R"({"a":2})"}},
      {R"({"enum":["a","ab",3]})", {"\"a\"", "\"ab\"", "3"}, {"\"abc\"", "4", "\"b\""}},
      {R"({"enum":["a",3],"type":"integer"})", {"3"}, {"\"a\""}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1,2,3]", "[1, 2]"},
       {"[]", "[1,2,3,4]", "[\"a\"]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
       {"[]", "[1]", "[1,\"a\"]"},
       {"[\"a\"]", "[1,\"a\",2]"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{}},"required":["b"]})",
       {R"({"b":"x"})", R"({"a":1,"b":"x"})", R"({"a":1, "b": "x","c":[1]})", R"({"b":"x","c":null})"},
       {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"b":"x","b":"x"})", R"({"b":1})", R"({"b":"x",})",
        R"({"b":"x","d":1})"}},
      {R"({"type":"object"})", {"{}", R"({"any":{"thing":[1]}})", R"({"a":1,"b":2})"}, {"[]", R"({"a"})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", R"({"x":1,"y":2})"}, {R"({"x":"1"})"}},
      {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"x":1})"}},
      {R"({"type":"object","required":["k"]})", {R"({"k":5})"}, {"{}"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"boolean"}}]})",
       {"3", "[true]"},
       {"\"a\"", "[3]"}},
      {R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},
          "required":["v","next"]}},"$ref":"#/$defs/t"})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{}})"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
                    {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k","y"]}]})",
       {R"({"k":"a","x":1})", R"({"k":"b","y":"s"})"},
       {R"({"k":"a","y":"s"})"}},
  };
  for (auto& c : cases) {
    for (auto* text : c.yes) EXPECT_TRUE(takes(c.schema, text)) << c.schema << " " << text;
    for (auto* text : c.no) EXPECT_FALSE(takes(c.schema, text)) << c.schema << " " << text;
  }
}

TEST(Grammar, RefusesWhatItDoesNotKnow) {
  for (const char* schema :
       {R"({"type":"string","pattern":"a"})", R"({"not":{}})", R"({"type":"object","patternProperties":{}})",
        R"({"type":"nothing"})", R"({"$ref":"#/$defs/x"})", R"({"$ref":"http://x"})", R"({"enum":[]})",
        R"({"type":"integer","multipleOf":2})", R"({"allOf":[{},{}]})",
        R"({"oneOf":[{"type":"string"},{"type":"string"}]})", R"({"anyOf":[{}],"type":"object"})",
        R"({"type":"array","minItems":3,"maxItems":2})", R"({"type":"array","uniqueItems":true})", R"({"$ref":"#"})",
        R"({"type":"integer","minimum":2,"maximum":1})",
        R"({"type":"object","required":["a"],"additionalProperties":false})"})
    EXPECT_THROW(Grammar::of_schema(schema), Error) << schema;
}

TEST(Grammar, ChoosesAmongTexts) {
  auto grammar = Grammar::of_texts({"yes", "yes, sir", "no"});
  for (const char* text : {"yes", "yes, sir", "no"})
    EXPECT_TRUE(grammar->may_end(grammar->after(grammar->begin(), text))) << text;
  EXPECT_FALSE(grammar->must_end(grammar->after(grammar->begin(), "yes")));
  EXPECT_TRUE(grammar->must_end(grammar->after(grammar->begin(), "no")));
  EXPECT_TRUE(grammar->after(grammar->begin(), "nope").empty());
}

// Whatever is drawn from the allowed tokens, and whatever is not allowed is wrong.
TEST(Grammar, AllowsExactlyTheTokensThatGoOn) {
  const TokenTexts tokens(testing::chat_tokenizer(), 2048);
  const char* schemas[] = {
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"n":{"type":"integer","minimum":-20,"maximum":300},
          "list":{"type":"array","items":{"type":["number","null"]},"maxItems":3}},"required":["name","n"]})",
      R"({"type":"array","items":{"enum":["the","they",12]},"minItems":2,"maxItems":4})",
      R"({"type":"integer","minimum":17,"maximum":23})"};
  std::mt19937 random(3);
  for (auto* schema : schemas) {
    auto grammar = Grammar::of_schema(schema);
    for (int run = 0; run < 30; ++run) {
      auto places = grammar->begin();
      std::string text;
      for (int step = 0; step < 200 && !grammar->must_end(places); ++step) {
        auto allowed = grammar->allowed(places, tokens);
        std::vector<int64_t> ids;
        for (int64_t id = 0; id < tokens.vocab(); ++id) {
          if ((*allowed)[size_t(id)]) ids.push_back(id);
          if (step == 2) {
            EXPECT_EQ((*allowed)[size_t(id)],
                      !tokens.text(id).empty() && !grammar->after(places, tokens.text(id)).empty())
                << tokens.text(id);
          }
        }
        if (grammar->may_end(places) && (ids.empty() || random() % 2)) break;
        ASSERT_FALSE(ids.empty()) << text;
        const int64_t id = ids[random() % ids.size()];
        text += tokens.text(id);
        places = grammar->after(places, tokens.text(id));
      }
      if (grammar->may_end(places)) {
        EXPECT_NO_THROW(std::ignore = Json::parse(text)) << text;
      }
    }
  }
}

}  // namespace
}  // namespace sinter::serve
