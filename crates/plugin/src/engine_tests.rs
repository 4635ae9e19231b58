//! The engine against a kernel that is a map: order, undo, B101, drift.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use podwire_spec::error::Error;

use super::{Making, drift, joined, remove_all};
use crate::inventory::{Belongs, Difference, Made, Plan, Resource};

#[derive(Default)]
struct Kernel {
    objects: BTreeMap<&'static str, &'static str>,
    journal: Rc<RefCell<Vec<String>>>,
}

#[derive(Clone, Copy)]
enum Fault {
    None,
    Make,
    Panic,
    Remove,
}

struct Thing {
    name: &'static str,
    value: &'static str,
    belongs: Belongs,
    fault: Fault,
}

fn thing(name: &'static str, belongs: Belongs, fault: Fault) -> Box<dyn Resource<Kernel>> {
    Box::new(Thing { name, value: "right", belongs, fault })
}

impl Resource<Kernel> for Thing {
    fn describe(&self) -> String {
        self.name.to_owned()
    }

    fn belongs(&self) -> Belongs {
        self.belongs
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        kernel.journal.borrow_mut().push(format!("make {}", self.name));
        match self.fault {
            Fault::Make => return Err(Error::internal("the kernel said no")),
            Fault::Panic => panic!("bug"),
            _ => {}
        }
        match kernel.objects.insert(self.name, self.value) {
            Some(_) => Ok(Made::Found),
            None => Ok(Made::Created),
        }
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(match kernel.objects.get(self.name) {
            None => vec![Difference::missing(self.name)],
            Some(found) if *found != self.value => {
                vec![Difference::new(self.name, self.value, *found)]
            }
            Some(_) => Vec::new(),
        })
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        kernel.journal.borrow_mut().push(format!("remove {}", self.name));
        if let Fault::Remove = self.fault {
            return Err(Error::internal("busy"));
        }
        kernel.objects.remove(self.name);
        Ok(())
    }
}

fn names(kernel: &Kernel) -> Vec<&'static str> {
    kernel.objects.keys().copied().collect()
}

#[test]
fn a_plan_is_made_in_order() {
    let mut kernel = Kernel::default();
    let plan: Plan<Kernel> = vec![
        thing("bridge", Belongs::Host, Fault::None),
        thing("link", Belongs::AttachmentAddress, Fault::None),
        thing("rules", Belongs::Attachment, Fault::None),
    ];
    Making::new(plan).make(&mut kernel).unwrap();
    assert_eq!(*kernel.journal.borrow(), ["make bridge", "make link", "make rules"]);
}

#[test]
fn a_failure_takes_back_what_was_made_and_only_that() {
    for fault in [Fault::Make, Fault::Panic] {
        let mut kernel = Kernel::default();
        kernel.objects.insert("bridge", "right");
        let plan: Plan<Kernel> = vec![
            thing("bridge", Belongs::Host, Fault::None),
            thing("link", Belongs::AttachmentAddress, Fault::None),
            thing("address", Belongs::Sandbox, Fault::None),
            thing("rules", Belongs::Attachment, fault),
        ];
        let error = Making::new(plan).make(&mut kernel).unwrap_err();
        assert!(error.msg.starts_with("rules: "), "{error}");
        assert_eq!(names(&kernel), ["bridge"], "what was found stays");
        let journal = kernel.journal.borrow();
        assert_eq!(journal[journal.len() - 2..], ["remove address", "remove link"]);
    }
}

#[test]
fn removal_goes_on_after_an_error_and_leaves_the_host_and_the_sandbox() {
    let mut kernel = Kernel::default();
    let plan: Plan<Kernel> = vec![
        thing("bridge", Belongs::Host, Fault::None),
        thing("link", Belongs::AttachmentAddress, Fault::None),
        thing("address", Belongs::Sandbox, Fault::None),
        thing("rules", Belongs::Attachment, Fault::Remove),
    ];
    let mut making = Making::new(plan);
    making.make(&mut kernel).unwrap();
    let plan = making.plan;
    let mut errors = Vec::new();
    assert!(remove_all(&plan, &mut kernel, &mut errors), "rules don't hold the address");
    assert_eq!(errors.len(), 1);
    assert_eq!(names(&kernel), ["address", "bridge", "rules"]);
}

#[test]
fn b101_the_address_is_not_free_while_its_interface_stands() {
    let mut kernel = Kernel::default();
    let plan: Plan<Kernel> = vec![
        thing("link", Belongs::AttachmentAddress, Fault::Remove),
        thing("rules", Belongs::Attachment, Fault::None),
    ];
    let mut errors = Vec::new();
    assert!(!remove_all(&plan, &mut kernel, &mut errors));
    assert_eq!(errors[0].msg, "removing link: busy");
}

#[test]
fn several_errors_become_one_that_names_all() {
    assert!(joined(Vec::new()).is_ok());
    let first = Error::try_again("first").with_details("wait");
    let error = joined(vec![first.clone(), Error::internal("second")]).unwrap_err();
    assert_eq!(error.code, first.code);
    assert_eq!(error.details, "wait\nsecond");
    assert_eq!(joined(vec![first.clone()]).unwrap_err(), first);
}

#[test]
fn check_names_the_differences() {
    use crate::attachment::Attachment;
    use crate::sandbox::Sandbox;
    use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};

    let key = AttachmentKey {
        network: NetworkName::parse("pods").unwrap(),
        container_id: ContainerId::parse("c1").unwrap(),
        ifname: IfName::parse("eth0").unwrap(),
    };
    let attachment = Attachment::new(key, Sandbox::Unspecified);
    assert!(drift("bridge", &attachment, &[]).is_ok());
    let found: Vec<_> = (0..7).map(|n| Difference::missing(format!("route {n}"))).collect();
    let error = drift("bridge", &attachment, &found).unwrap_err();
    assert_eq!(error.code.number(), 100);
    assert!(error.msg.contains("eth0") && error.msg.ends_with("route 0 is missing"), "{error}");
    assert!(error.details.starts_with("route 1 is missing; "), "{error}");
    assert!(error.details.ends_with("and 2 more"), "{error}");
    let error = drift("bridge", &attachment, &found[..1]).unwrap_err();
    assert!(!error.details.contains("route"), "{error}");

    let mut kernel = Kernel::default();
    kernel.objects.insert("rules", "wrong");
    let plan: Plan<Kernel> = vec![thing("rules", Belongs::Attachment, Fault::None)];
    let found = plan[0].check(&mut kernel).unwrap();
    assert_eq!(found[0].to_string(), "rules: expected right, found wrong");
}
