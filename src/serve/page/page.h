// The page that the server shows at GET /: a chat, and the machine at work. One document without
// any other; page.html, page.css and the scripts beside this file, put together by
// cmake/embed.cmake.
#pragma once

#include <string_view>

namespace deltafin::serve {

// The body; "text/html; charset=utf-8".
std::string_view page_html();

// What its Content-Security-Policy header must say: only these scripts and styles, and no server
// but this one.
std::string_view page_policy();

}  // namespace deltafin::serve
