// Line editing by libedit.
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <string_view>

#include "base/check.h"
#include "cli/chat_input.h"
#include "cli/message_source.h"

namespace deltafin::cli {

namespace {

constexpr int kHistoryMessages = 1000;
// A terminal hands over a pasted block in pieces; nobody types a line in that time.
constexpr int kPasteMilliseconds = 20;

struct EditorEnd {
  void operator()(EditLine* editor) const { el_end(editor); }
};
struct HistoryEnd {
  void operator()(History* past) const { history_end(past); }
};

class TerminalSource final : public MessageSource {
 public:
  TerminalSource(std::string history_file, const CancelToken& cancel)
      : history_file_(std::move(history_file)), cancel_(cancel) {
    // libedit reads characters as the locale has them, and our text is UTF-8.
    if (std::setlocale(LC_CTYPE, "") == nullptr ||
        std::string_view(nl_langinfo(CODESET)) != "UTF-8")
      std::setlocale(LC_CTYPE, "C.UTF-8");
    past_.reset(history_init());
    editor_.reset(el_init("deltafin", stdin, stderr, stderr));
    CHECK(past_ != nullptr && editor_ != nullptr);
    HistEvent event;
    history(past_.get(), &event, H_SETSIZE, kHistoryMessages);
    history(past_.get(), &event, H_SETUNIQUE, 1);
    // The first time there is none.
    if (!history_file_.empty()) history(past_.get(), &event, H_LOAD, history_file_.c_str());
    EditLine* editor = editor_.get();
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, prompt_of);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_GETCFN, read_character);
    el_set(editor, EL_HIST, history, past_.get());
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(editor, nullptr);  // ~/.editrc
  }

  Result<Reading> next() override {
    ChatLines lines;
    bool is_complete = false;
    while (!is_complete || more_was_pasted()) {
      is_going_on_ = lines.is_open() || is_complete;
      el_resize(editor_.get());
      int count = 0;
      const char* text = el_gets(editor_.get(), &count);
      is_going_on_ = false;
      if (cancel_.cancelled()) {
        el_reset(editor_.get());
        std::fputs("\n", stderr);
        return Reading{Kind::Interrupted};
      }
      if (text == nullptr || count <= 0) {
        std::fputs("\n", stderr);
        if (!is_complete && !lines.is_open()) return Reading{Kind::End};
        break;
      }
      std::string_view line(text, static_cast<size_t>(count));
      if (line.ends_with('\n')) line.remove_suffix(1);
      if (is_complete) pasted_ += '\n';
      is_complete = lines.add(line);
      if (is_complete) pasted_ += lines.take();
    }
    if (lines.is_open()) pasted_ += lines.take();
    std::string message = std::exchange(pasted_, {});
    remember(message);
    return Reading{Kind::Message, std::move(message)};
  }

  bool is_terminal() const override { return true; }

 private:
  static char* prompt_of(EditLine* editor) {
    static char first[] = "> ", more[] = ". ";
    return of(editor).is_going_on_ ? more : first;
  }

  static TerminalSource& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<TerminalSource*>(self);
  }

  // libedit's own goes on reading after a Ctrl-C. 1: a character; 0: the end; -1: no more now.
  static int read_character(EditLine* editor, wchar_t* character) {
    const TerminalSource& self = of(editor);
    std::mbstate_t state{};
    for (;;) {
      if (self.cancel_.cancelled()) return -1;
      char byte = 0;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got == 0) return 0;
      if (got < 0 && errno == EINTR) continue;  // a stop, or a window of another size
      if (got < 0) return -1;
      const size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used <= 1) return 1;
      if (used == static_cast<size_t>(-1)) state = {};  // no character: left out
    }
  }

  // A pasted block is one message: while more is there, Enter does not send.
  bool more_was_pasted() {
    // In the other mode a terminal does not tell of a line that has no end yet.
    el_set(editor_.get(), EL_PREP_TERM, 1);
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const bool more = ::poll(&input, 1, kPasteMilliseconds) > 0;
    if (!more) el_set(editor_.get(), EL_PREP_TERM, 0);
    return more;
  }

  void remember(const std::string& message) {
    if (message.empty()) return;
    HistEvent event;
    history(past_.get(), &event, H_ENTER, message.c_str());
    // What cannot be kept is no reason to stop a conversation.
    if (!history_file_.empty()) history(past_.get(), &event, H_SAVE, history_file_.c_str());
  }

  std::string history_file_;
  const CancelToken& cancel_;
  std::unique_ptr<History, HistoryEnd> past_;
  std::unique_ptr<EditLine, EditorEnd> editor_;  // dies before its history
  std::string pasted_;
  bool is_going_on_ = false;
};

}  // namespace

std::unique_ptr<MessageSource> open_terminal_source(const std::string& history_file,
                                                    const CancelToken& cancel) {
  return std::make_unique<TerminalSource>(history_file, cancel);
}

}  // namespace deltafin::cli
