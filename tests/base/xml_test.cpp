#include "sinter/base/xml.h"

#include <gtest/gtest.h>

namespace sinter {
namespace {

TEST(XmlEscape, ReplacesWhatIsReserved) {
  EXPECT_EQ(xml_escape("a < b && c > \"d's\""), "a &lt; b &amp;&amp; c &gt; &#34;d&#39;s&#34;");
  EXPECT_EQ(xml_escape("\tx\n\x01y \xc3\x97"), "\tx\n y \xc3\x97");
  EXPECT_EQ(xml_escape(""), "");
  EXPECT_EQ(escape_markup("\x01<\"'&>"), "\x01&lt;&#34;&#39;&amp;&gt;");
}

}  // namespace
}  // namespace sinter
