// A pool of database connections: a channel holds those that are free, and queries run in
// blocking(), because libpq blocks its thread.
//
//   database "host=localhost dbname=shop"       (without arguments: PGHOST, PGDATABASE and so on)
#include <gofer/gofer.h>

#include <libpq-fe.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

class database {
 public:
  database(const std::string& where, int connections) : free_(connections) {
    for (int i = 0; i < connections; ++i) {
      connection c(gofer::blocking([&] { return PQconnectdb(where.c_str()); }), &PQfinish);
      if (PQstatus(c.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(c.get()));
      free_.send(std::move(c));
    }
  }
  std::string query(const gofer::context& ctx, const char* sql) const {
    auto c = free_.recv(ctx);  // parked until a connection is free
    if (!c) ctx.throw_if_done();
    const answer rows(gofer::blocking([&] { return PQexec(c->get(), sql); }), &PQclear);
    const std::string error = PQerrorMessage(c->get());
    if (PQstatus(c->get()) != CONNECTION_OK) gofer::blocking([&] { PQreset(c->get()); });
    free_.send(std::move(*c));  // there is room: it never waits
    if (PQresultStatus(rows.get()) != PGRES_TUPLES_OK) throw std::runtime_error(error);
    return PQgetvalue(rows.get(), 0, 0);
  }

 private:
  gofer::chan<connection> free_;
};

int main(int argc, char** argv) {
  gofer::run([&] {
    const database db(argc > 1 ? argv[1] : "", 4);
    auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 60s);
    gofer::task_group tasks(ctx);
    for (int i = 0; i < 100; ++i) {
      tasks.go([&] {
        if (db.query(tasks.ctx(), "select 6 * 7 from pg_sleep(0.01)") != "42") {
          throw std::logic_error("wrong");
        }
      });
    }
    tasks.wait();
    std::puts("100 queries over 4 connections");
    try {
      db.query(ctx, "select 1 / 0");
    } catch (const std::runtime_error& e) {
      std::printf("%s", e.what());
    }
  });
}
