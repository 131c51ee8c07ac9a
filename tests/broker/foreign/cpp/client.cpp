// Uses of proton C++ that tests ask for: a line on standard input names one, with the URL of a broker and arguments,
// separated by tabs. What it observes are lines on standard output; the last one is "== done" or "== failed REASON".

#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/error_condition.hpp>
#include <proton/message.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver.hpp>
#include <proton/receiver_options.hpp>
#include <proton/reconnect_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/session.hpp>
#include <proton/source.hpp>
#include <proton/source_options.hpp>
#include <proton/ssl.hpp>
#include <proton/target.hpp>
#include <proton/target_options.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/types.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using words = std::vector<std::string>;

namespace {

void say(const std::string& text) { std::cout << text << std::endl; }

words split(const std::string& text, char separator) {
    words found;
    std::istringstream input(text);
    for (std::string word; std::getline(input, word, separator);) found.push_back(word);
    return found;
}

// One connection, which the use closes when it has seen enough.
class use : public proton::messaging_handler {
  public:
    use(const words& arguments) : arguments_(arguments) {}

    void on_container_start(proton::container& container) override {
        connection_ = container.connect(url(), options());
    }

    // Errors of links, sessions, connections and transports end the use, unless it expects them.
    void on_error(const proton::error_condition& error) override { throw std::runtime_error(error.what()); }

  protected:
    const std::string& url() const { return arguments_.at(0); }
    const std::string& argument(size_t index) const { return arguments_.at(index + 1); }
    size_t count() const { return arguments_.size() - 1; }
    virtual proton::connection_options options() { return proton::connection_options().sasl_allow_insecure_mechs(true); }
    proton::connection connection_;

  private:
    words arguments_;
};

// ADDRESS BODY...: texts; says the outcome of each.
class sending : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override { connection.open_sender(argument(0)); }

    void on_sendable(proton::sender& sender) override {
        for (; sent_ + 1 < count() && sender.credit() > 0; ++sent_) {
            sender.send(proton::message(argument(sent_ + 1)));
        }
    }

    void on_tracker_accept(proton::tracker&) override { decided("accepted"); }
    void on_tracker_reject(proton::tracker&) override { decided("rejected"); }
    void on_tracker_release(proton::tracker&) override { decided("released"); }

  private:
    void decided(const std::string& outcome) {
        outcomes_ += outcomes_.empty() ? outcome : " " + outcome;
        if (++decided_ + 1 == count()) {
            say(outcomes_);
            connection_.close();
        }
    }

    size_t sent_ = 0, decided_ = 0;
    std::string outcomes_;
};

// ADDRESS browse|consume [SELECTOR]: what is there; the credit is used up, or returned.
class reading : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        proton::source_options source;
        if (argument(1) == "browse") source.distribution_mode(proton::source::COPY);
        if (count() > 2) {
            proton::source::filter_map filters;
            proton::value selector;
            proton::codec::encoder encoder(selector);
            encoder << proton::codec::start::described() << proton::symbol("apache.org:selector-filter:string")
                    << argument(2) << proton::codec::finish();
            filters.put("selector", selector);
            source.filters(filters);
        }
        receiver_ = connection.open_receiver(
            argument(0), proton::receiver_options().credit_window(0).source(source));
    }

    void on_receiver_open(proton::receiver& receiver) override {
        receiver.add_credit(1000);
        receiver.drain();
    }

    void on_message(proton::delivery&, proton::message& message) override {
        say(proton::get<std::string>(message.body()));
    }

    void on_receiver_drain_finish(proton::receiver&) override { connection_.close(); }

  private:
    proton::receiver receiver_;
};

// QUEUE: a message with all sections, there and back.
class types : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        connection.open_receiver(argument(0));
        connection.open_sender(argument(0));
    }

    void on_sendable(proton::sender& sender) override {
        if (sent_) return;
        sent_ = true;
        proton::message message;
        message.id("message");
        message.correlation_id(uint64_t(9));
        message.user("guest");
        message.to(argument(0));
        message.subject("subject");
        message.reply_to("answers");
        message.content_type("text/plain");
        message.group_id("group");
        message.group_sequence(3);
        message.durable(true);
        message.priority(7);
        message.properties().put("byte", int8_t(-1));
        message.properties().put("ulong", uint64_t(18446744073709551615ull));
        message.properties().put("float", 0.5f);
        message.properties().put("symbol", proton::symbol("symbol"));
        message.properties().put("binary", proton::binary("\x01\x02"));
        message.message_annotations().put("x-opt-of-mine", proton::symbol("annotation"));
        std::map<std::string, proton::scalar> body{{"a", proton::scalar(1)}, {"b", proton::scalar("two")}};
        message.body(body);
        sent_message_ = message;
        sender.send(message);
    }

    void on_message(proton::delivery& delivery, proton::message& message) override {
        std::ostringstream text;
        text << proton::value(message.properties()) << " " << proton::value(message.message_annotations());
        text << " " << message.body();
        say(text.str());
        bool same = message.id() == sent_message_.id() && message.correlation_id() == sent_message_.correlation_id()
            && message.user() == sent_message_.user() && message.subject() == sent_message_.subject()
            && message.reply_to() == sent_message_.reply_to() && message.content_type() == sent_message_.content_type()
            && message.group_id() == sent_message_.group_id() && message.durable() && message.priority() == 7
            && message.group_sequence() == 3;
        say(same ? "the same headers" : "other headers");
        delivery.accept();
        connection_.close();
    }

  private:
    bool sent_ = false;
    proton::message sent_message_;
};

// QUEUE SIZE FRAME: a message of many small frames, there and back.
class large : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        body_ = proton::binary(std::stoul(argument(1)));
        for (size_t index = 0; index < body_.size(); ++index) body_[index] = uint8_t(index * 31);
        connection.open_receiver(argument(0));
        connection.open_sender(argument(0));
    }

    void on_sendable(proton::sender& sender) override {
        if (!sent_) sender.send(proton::message(body_));
        sent_ = true;
    }

    void on_message(proton::delivery&, proton::message& message) override {
        say(proton::get<proton::binary>(message.body()) == body_ ? "the same" : "another");
        connection_.close();
    }

  protected:
    proton::connection_options options() override {
        return proton::connection_options().max_frame_size(uint32_t(std::stoul(argument(2))));
    }

  private:
    bool sent_ = false;
    proton::binary body_;
};

// QUEUE: a message that is released, modified, and rejected.
class outcomes : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        connection.open_sender(argument(0));
        connection.open_receiver(argument(0), proton::receiver_options().credit_window(0).auto_accept(false));
    }

    void on_sendable(proton::sender& sender) override {
        if (!sent_) sender.send(proton::message("one"));
        sent_ = true;
    }

    void on_receiver_open(proton::receiver& receiver) override { receiver.add_credit(1); }

    void on_message(proton::delivery& delivery, proton::message& message) override {
        std::ostringstream text;
        text << proton::get<std::string>(message.body()) << " " << message.delivery_count();
        say(text.str());
        switch (++seen_) {
            case 1: delivery.release(); break;
            case 2: delivery.modify(); break;
            default: delivery.reject();
        }
        delivery.receiver().add_credit(1);
        if (seen_ == 3) delivery.receiver().drain();
    }

    void on_receiver_drain_finish(proton::receiver&) override { connection_.close(); }

  private:
    bool sent_ = false;
    int seen_ = 0;
};

// QUEUE: requests are answered to a dynamic node, by the anonymous relay.
class request : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        connection.open_receiver(argument(0));
        connection.open_receiver("", proton::receiver_options().source(proton::source_options().dynamic(true)));
        relay_ = connection.open_sender("", proton::sender_options().target(proton::target_options().anonymous(true)));
    }

    void on_receiver_open(proton::receiver& receiver) override {
        if (receiver.source().dynamic()) answers_ = receiver.source().address();
        ask();
    }

    void on_sendable(proton::sender&) override { ask(); }

    void on_message(proton::delivery& delivery, proton::message& message) override {
        if (delivery.receiver().source().dynamic()) {
            say(proton::get<std::string>(message.body()));
            connection_.close();
            return;
        }
        proton::message answer("answer to " + proton::get<std::string>(message.body()));
        answer.to(message.reply_to());
        relay_.send(answer);
    }

  private:
    void ask() {
        if (asked_ || answers_.empty() || relay_.credit() < 2) return;
        asked_ = true;
        proton::message question("question");
        question.to(argument(0));
        question.reply_to(answers_);
        relay_.send(question);
    }

    bool asked_ = false;
    std::string answers_;
    proton::sender relay_;
};

// EXCHANGE CLIENT NAME keep|end: what a durable subscription has; it is kept by detaching, ended by closing.
class subscription : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        auto source = proton::source_options()
                          .durability_mode(proton::source::UNSETTLED_STATE)
                          .expiry_policy(proton::source::NEVER);
        auto options = proton::receiver_options().name(argument(2)).credit_window(0).source(source);
        connection.open_receiver(argument(0), options);
    }

    void on_receiver_open(proton::receiver& receiver) override {
        receiver.add_credit(1000);
        receiver.drain();
    }

    void on_message(proton::delivery&, proton::message& message) override {
        say(proton::get<std::string>(message.body()));
    }

    void on_receiver_drain_finish(proton::receiver& receiver) override {
        if (argument(3) == "keep") {
            receiver.detach();
            connection_.close();
        } else {
            receiver.close();
        }
    }

    void on_receiver_close(proton::receiver&) override { connection_.close(); }

  protected:
    proton::connection_options options() override { return proton::connection_options().container_id(argument(1)); }
};

// ADDRESS: the reason why a link is refused.
class refused : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override { connection.open_receiver(argument(0)); }

    void on_receiver_error(proton::receiver& receiver) override {
        say(receiver.error().what());
        connection_.open_sender(argument(0));
    }

    void on_sender_error(proton::sender& sender) override {
        say(sender.error().what());
        connection_.close();
    }
};

// QUEUE: a connection that is cut is made again, with its links.
class reconnect : public use {
  public:
    using use::use;

    void on_connection_open(proton::connection& connection) override {
        if (connection.reconnected()) return;
        connection.open_sender(argument(0));
        connection.open_receiver(argument(0), proton::receiver_options().auto_accept(false));
    }

    void on_sendable(proton::sender& sender) override {
        if (sent_ == 0 || (sent_ == 1 && sender.connection().reconnected())) {
            sender.send(proton::message("message " + std::to_string(++sent_)));
        }
    }

    void on_message(proton::delivery& delivery, proton::message& message) override {
        if (!delivery.connection().reconnected()) {
            say("held " + proton::get<std::string>(message.body()));
            // What is held is not acknowledged, and comes again over the next connection.
            say("== pause cut");
            std::string line;
            std::getline(std::cin, line);
            return;
        }
        say(proton::get<std::string>(message.body()));
        delivery.accept();
        if (++received_ == 2) connection_.close();
    }

    void on_transport_error(proton::transport&) override {}

  protected:
    proton::connection_options options() override {
        auto delays = proton::reconnect_options().delay(proton::duration(10)).max_delay(proton::duration(50));
        return proton::connection_options().reconnect(delays);
    }

  private:
    int sent_ = 0, received_ = 0;
};

// ADDRESS AUTHORITY [CERTIFICATE]: a client that proves who it is by a certificate, or with none cannot, sends.
class certified : public sending {
  public:
    certified(const words& arguments) : sending({arguments.at(0), arguments.at(1), "x"}), files_(arguments) {}

  protected:
    proton::connection_options options() override {
        const std::string& authority = files_.at(2);
        auto tls = files_.size() < 4
            ? proton::ssl_client_options(authority)
            : proton::ssl_client_options(proton::ssl_certificate(files_[3], files_[3]), authority);
        return proton::connection_options().ssl_client_options(tls).sasl_allowed_mechs("EXTERNAL");
    }

  private:
    words files_;
};

template <class Use> void run(const words& arguments) {
    Use handler(arguments);
    proton::container(handler).run();
}

const std::map<std::string, std::function<void(const words&)>> uses{
    {"send", run<sending>},
    {"read", run<reading>},
    {"types", run<types>},
    {"large", run<large>},
    {"outcomes", run<outcomes>},
    {"request", run<request>},
    {"subscription", run<subscription>},
    {"refused", run<refused>},
    {"reconnect", run<reconnect>},
    {"certified", run<certified>},
};

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        words arguments = split(line, '\t');
        std::string name = arguments.front();
        arguments.erase(arguments.begin());
        try {
            uses.at(name)(arguments);
            say("== done");
        } catch (const std::exception& error) {
            say(std::string("== failed ") + error.what());
        }
    }
}
