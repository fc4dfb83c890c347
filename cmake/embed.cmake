# Makes one page of src/serve/page/ and puts it into the program: every style sheet and script that page.html
# names comes inline, and the policy names them by their hashes, so that nothing else runs.
#
# Included, it defines embed_page(TARGET). As a script it does the work:
#
#   cmake -D SOURCE=src/serve/page -D OUTPUT=FOLDER -P cmake/embed.cmake
#
# writes FOLDER/page.cc (the functions of serve/page/page.h), and for looking at it page.html and
# page.policy, its Content-Security-Policy.

function(embed_page target)
  set(source ${CMAKE_SOURCE_DIR}/src/serve/page)
  set(output ${CMAKE_BINARY_DIR}/page)
  file(GLOB parts CONFIGURE_DEPENDS ${source}/*.html ${source}/*.css ${source}/*.js)
  add_custom_command(
    OUTPUT ${output}/page.cc
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${source} -D OUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${parts} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the page" VERBATIM)
  target_sources(${target} PRIVATE ${output}/page.cc)
endfunction()

# base64_sha256(OUT TEXT): as policies spell it. Three hexadecimal digits are two of base 64; of the 64
# digits one is left, 4 bits, which the padding follows.
function(base64_sha256 out text)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(base64 "")
  foreach(at RANGE 0 63 3)
    string(SUBSTRING "${hex}00" ${at} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING ${alphabet} ${high} 1 first)
    string(SUBSTRING ${alphabet} ${low} 1 second)
    string(APPEND base64 ${first}${second})
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${out} "${base64}=" PARENT_SCOPE)
endfunction()

# leave_out_indentation(VARIABLE): and empty lines, and comments of scripts that have lines of their own. They
# are for readers of the source.
function(leave_out_indentation variable)
  string(REGEX REPLACE "\n[ \n]+" "\n" lines "\n${${variable}}")
  string(REGEX REPLACE "\n//[^\n]*" "" lines "${lines}")
  string(SUBSTRING "${lines}" 1 -1 lines)
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# put_inline(TAG_REGEX ELEMENT HASHES): replaces the tags in `page`, which name a file, by an element with
# what is in it; appends its hash to HASHES.
function(put_inline tag_regex element hashes)
  string(REGEX MATCHALL "${tag_regex}" tags "${page}")
  foreach(tag IN LISTS tags)
    string(REGEX REPLACE "${tag_regex}" "\\1" name "${tag}")
    file(READ ${SOURCE}/${name} text)
    leave_out_indentation(text)
    base64_sha256(hash "${text}")
    string(REPLACE "${tag}" "<${element}>${text}</${element}>" page "${page}")
    string(APPEND ${hashes} " 'sha256-${hash}'")
  endforeach()
  set(page "${page}" PARENT_SCOPE)
  set(${hashes} "${${hashes}}" PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()

file(READ ${SOURCE}/page.html page)
leave_out_indentation(page)
put_inline("<link rel=\"stylesheet\" href=\"([a-z_]+[.]css)\">" style style_hashes)
put_inline("<script src=\"([a-z_]+[.]js)\"></script>" script script_hashes)

# Only its own server may be asked, and no text becomes markup: require-trusted-types-for.
string(CONCAT policy "default-src 'none'; script-src${script_hashes}; style-src${style_hashes}; "
       "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'; trusted-types 'none'")
file(WRITE ${OUTPUT}/page.html "${page}")
file(WRITE ${OUTPUT}/page.policy "${policy}")

# Characters one by one: compilers take literals of 64 KiB at most.
file(READ ${OUTPUT}/page.html bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT}/page.cc "#include \"serve/page/page.h\"

namespace deltafin::serve {

namespace {

constexpr char kPage[] = {${bytes}};

}  // namespace

std::string_view page_html() { return {kPage, sizeof(kPage)}; }

std::string_view page_policy() {
  return
      \"${policy}\";
}

}  // namespace deltafin::serve
")
