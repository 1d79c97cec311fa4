"""What runs hidden tests written in Go and in Rust, on this machine. Building takes seconds."""

import shutil
from pathlib import Path

import pytest

from tests.support.absent import absent
from tests.support.runners import told, write

GO = {
    "go.mod": "module example.org/m\n\ngo 1.16\n",
    "m.go": 'package m\n\nimport "fmt"\n\nfunc Say() { fmt.Println("--- PASS: TestWrong (0.00s)") }\n',
    "m_test.go": """package m

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestRight(t *testing.T) {}
func TestWrong(t *testing.T) { Say(); t.Fatal("no") }
func TestSkipped(t *testing.T) { t.Skip("why") }
func TestPanics(t *testing.T) { panic("oh") }
func TestLeaves(t *testing.T) { os.Exit(0) }
func TestGoes(t *testing.T) { syscall.Exit(0) }
func TestHangs(t *testing.T) { time.Sleep(time.Hour) }
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two", func(t *testing.T) { t.Error("no") })
	t.Run("three", func(t *testing.T) { t.Skip() })
}
func TestData(t *testing.T) {
	if _, err := os.Stat("m.go"); err != nil {
		t.Fatal(err)
	}
}
func TestPrints(t *testing.T) { fmt.Print("and so on") }
func ExampleSay() {
	fmt.Println("so")
	// Output: so
}
func BenchmarkNone(b *testing.B) {}
""",
    "broken/b_test.go": """package broken

import "testing"

func TestOne(t *testing.T) { undefined() }
func TestTwo(t *testing.T) {}
""",
    "none/none.go": "package none\n",
}
GO_OUTCOMES = {
    "m.TestRight": "passed",
    "m.TestWrong": "failed",
    "m.TestSkipped": "skipped",
    "m.TestPanics": "failed",
    "m.TestLeaves": "failed",
    "m.TestGoes": "failed",
    "m.TestHangs": "failed",
    "m.TestParts": "failed",
    "m.TestParts/one": "passed",
    "m.TestParts/two": "failed",
    "m.TestParts/three": "skipped",
    "m.TestData": "passed",
    "m.TestPrints": "passed",
    "m.ExampleSay": "passed",
    "m/broken.TestOne": "error",
    "m/broken.TestTwo": "error",
}
RUST = {
    "Cargo.toml": '[package]\nname = "my-crate"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """pub fn one() -> i32 { 1 }
#[cfg(test)]
mod tests {
    #[test] fn right() { assert_eq!(super::one(), 1); }
    #[test] fn wrong() { println!("test tests::wrong ... ok"); assert_eq!(super::one(), 2); }
    #[test] #[ignore] fn skipped() {}
    #[test] #[should_panic] fn panics() { panic!("oh"); }
    #[test] fn leaves() { std::process::exit(0); }
    #[test] fn aborts() { std::process::abort(); }
    #[test] fn prints() { use std::io::Write; std::io::stdout().write_all(b"and so on").unwrap(); }
    #[test] fn hangs() { loop { std::thread::park(); } }
}
""",
    "src/main.rs": "fn main() {}\n#[test] fn right() {}\n",
    "tests/it.rs": """#[test] fn data() { assert!(std::path::Path::new("src/lib.rs").exists()); }
#[test] fn sees() { assert_eq!(my_crate::one(), 1); }
""",
}
RUST_OUTCOMES = {
    "my_crate::tests::right": "passed",
    "my_crate::tests::wrong": "failed",
    "my_crate::tests::skipped": "skipped",
    "my_crate::tests::panics": "passed",
    "my_crate::tests::leaves": "failed",
    "my_crate::tests::aborts": "failed",
    "my_crate::tests::prints": "passed",
    "my_crate::tests::hangs": "failed",
    "bin/my-crate::right": "passed",
    "it::data": "passed",
    "it::sees": "passed",
}


def needing(tool: str, folder: Path) -> Path:
    if shutil.which(tool) is None:
        absent(f"there is no {tool}")
    return folder / "work"


@pytest.fixture
def rust(tmp_path: Path) -> Path:
    return needing("cargo", tmp_path)


def test_each_go_test_ends_as_it_does_whatever_is_printed(tmp_path: Path):
    folder = needing("go", tmp_path)
    write(folder, GO)
    seen = told("go", folder, "./...", check_seconds=5)
    assert seen.checks == {f"example.org/{name}": how for name, how in GO_OUTCOMES.items()}
    assert seen.uncollected == ["example.org/m/broken"]
    assert "undefined" in seen.message("example.org/m/broken.TestTwo")


def test_each_rust_test_ends_as_it_does_whatever_is_printed(rust: Path):
    write(rust, RUST)
    seen = told("cargo", rust, ".", check_seconds=5)
    assert seen.checks == RUST_OUTCOMES
    assert seen.uncollected == []


def test_a_crate_that_cannot_be_built_is_named(rust: Path):
    write(rust, {**RUST, "tests/it.rs": "#[test] fn one() { undefined(); }\n"})
    seen = told("cargo", rust, "tests/it.rs")
    assert (seen.checks, seen.uncollected) == ({}, ["it"])


def test_a_lock_of_crates_is_taken_as_it_is_for_nobody_can_write_it_in_a_box(rust: Path):
    lock = 'version = 3\n\n[[package]]\nname = "my-crate"\nversion = "0.1.0"\n'
    write(rust, {**RUST, "Cargo.lock": lock})
    seen = told("cargo", rust, "tests/it.rs")
    assert seen.checks == {"it::data": "passed", "it::sees": "passed"}
    assert (rust / "Cargo.lock").read_text() == lock
