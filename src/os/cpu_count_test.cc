// gofer-test: once
#include "os/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

using gofer::internal::cgroup_cpu_limit;
using gofer::internal::default_gomaxprocs;
using gofer::internal::gomaxprocs_within;
using gofer::internal::num_cpu;

TEST(CpuCount, FollowsTheAffinityOfTheThread) {
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    EXPECT_EQ(num_cpu(), CPU_COUNT(&all));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(num_cpu(), 1);
    EXPECT_EQ(default_gomaxprocs(), 1);
  }).join();
}

TEST(CpuCount, DefaultIsBetweenOneAndTheNumberOfCpus) {
  EXPECT_GE(default_gomaxprocs(), 1);
  EXPECT_LE(default_gomaxprocs(), num_cpu());
}

TEST(GomaxprocsWithin, IsTheSmallerOfBothButAtLeastTwoByQuota) {
  EXPECT_EQ(gomaxprocs_within(8, 0), 8);
  EXPECT_EQ(gomaxprocs_within(8, 3), 3);
  EXPECT_EQ(gomaxprocs_within(8, 100), 8);
  EXPECT_EQ(gomaxprocs_within(8, 1), 2);
  EXPECT_EQ(gomaxprocs_within(1, 1), 1);
  EXPECT_EQ(gomaxprocs_within(1, 0), 1);
}

// A root directory with the files that the kernel would show.
class CgroupLimit : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gofer-cgroup-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void groups(const std::string& text) { write("/proc/self/cgroup", text); }
  void mounts(const std::string& text) { write("/proc/self/mountinfo", text); }
  void mount_v2(const std::string& root = "/") {
    mounts("22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n31 22 0:28 " + root +
           " /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void mount_v1(const std::string& root = "/") {
    mounts("30 22 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n31 22 0:28 " + root +
           " /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n"
           "32 22 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }
  int limit() const { return cgroup_cpu_limit(root_.c_str()); }

  std::string root_;
};

TEST_F(CgroupLimit, IsUnknownWithoutFiles) {
  EXPECT_EQ(limit(), 0);
  groups("0::/a\n");
  EXPECT_EQ(limit(), 0);
  mount_v2();
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupLimit, IsQuotaByPeriodRoundedUp) {
  groups("0::/a\n");
  mount_v2();
  write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
  write("/sys/fs/cgroup/a/cpu.max", "300001 100000\n");
  EXPECT_EQ(limit(), 4);
  write("/sys/fs/cgroup/a/cpu.max", "1000 100000\n");
  EXPECT_EQ(limit(), 1);
}

TEST_F(CgroupLimit, IsTheTightestOfAllAncestors) {
  groups("0::/a/b/c\n");
  mount_v2();
  write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/a/cpu.max", "250000 50000\n");
  EXPECT_EQ(limit(), 5);
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(limit(), 4);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 2);
}

TEST_F(CgroupLimit, IsNoneWhenTheFileSaysMaxOrNonsense) {
  groups("0::/a\n");
  mount_v2();
  for (const char* text : {"max 100000\n", "", "\n", "abc 100000\n", "100000\n", "100000 0\n",
                           "100000 x\n", "-1 100000\n", "99999999999999999999 1\n"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(limit(), 0) << text;
  }
}

TEST_F(CgroupLimit, ComesFromVersionOneWhereTheCpuControllerIsThere) {
  groups("12:cpuset:/x\n4:cpu,cpuacct:/a/b\n0::/u\n");
  mount_v1();
  write("/sys/fs/cgroup/unified/u/cpu.max", "100000 100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 0);
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "650000\n");
  EXPECT_EQ(limit(), 0);  // no period
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 7);
}

TEST_F(CgroupLimit, ComesFromVersionTwoWhereOtherControllersAreInVersionOne) {
  groups("12:cpuset:/x\n4:cpuacct:/a/b\n0::/u\n");
  mount_v1();
  write("/sys/fs/cgroup/unified/u/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupLimit, FindsTheGroupOfAContainerThatSeesNothingElse) {
  groups("4:cpu,cpuacct:/docker/abc\n");
  mount_v1("/docker/abc");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 4);
  groups("4:cpu,cpuacct:/docker/abc/inner\n");
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupLimit, StaysInsideTheMountWhenThePathLeadsOutOfIt) {
  groups("0::/../other\n");
  mount_v2("/../..");
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  write("/sys/fs/other/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupLimit, ReadsEscapedMountPointsAndLastLinesWithoutEnd) {
  groups("0::/a b");
  mounts("31 22 0:28 / /my\\040cgroups rw - cgroup2 cgroup2 rw");
  write("/my cgroups/a b/cpu.max", "300000 100000");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupLimit, SurvivesVeryLongLines) {
  groups("0::/a\n");
  const std::string layers(100'000, 'x');
  mounts("30 22 0:27 / / rw - overlay overlay rw,lowerdir=" + layers +
         "\n31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n40 22 0:30 / /x rw - x x " +
         layers);
  write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
  groups("0::/" + layers + "\n");
  EXPECT_EQ(limit(), 0);
  groups(layers);
  EXPECT_EQ(limit(), 0);
}

}  // namespace
