//! The columns of FOCUS 1.2 that the books can fill: all mandatory ones, those recommended and conditional ones
//! whose condition holds, and our own. `SkuId` and `SkuPriceId` are not among them: no provider tells them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::{Component, Identity, StorageKind};
use providers::money::{Currency, Rate};
use rust_decimal::Decimal;

use super::{Charged, Charges, Known, Place};
use crate::cli::spend::listing::component_word;
use crate::cli::table::csv_cell;
use crate::rules::spend::{Charge, Evidence, Exact, Period};

/// One row of the file.
struct Row<'a> {
    charges: &'a Charges,
    place: &'a Place,
    charged: &'a Charged,
    /// `None` for a product.
    known: Option<&'a Known>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Text,
    Figure,
}

use Holds::{Figure, Text};

/// A column: its id, what it holds, and its value. A value that there is not is an empty cell.
type Column = (&'static str, Holds, fn(&Row) -> Option<String>);

const COLUMNS: [Column; 48] = [
    ("BilledCost", Figure, |row| Some(cost(row.billed()))),
    ("BillingAccountId", Text, |row| Some(row.billing_account())),
    ("BillingAccountName", Text, |row| Some(row.place.account.to_string())),
    ("BillingCurrency", Text, |row| Some(row.place.currency.to_string())),
    ("BillingPeriodEnd", Text, |row| Some(moment(Period::month(row.place.day).end(row.zone())))),
    ("BillingPeriodStart", Text, |row| Some(moment(Period::month(row.place.day).start(row.zone())))),
    ("ChargeCategory", Text, |_| Some("Usage".to_owned())),
    ("ChargeClass", Text, |_| None),
    ("ChargeDescription", Text, |row| Some(row.description())),
    ("ChargeFrequency", Text, |_| Some("Usage-Based".to_owned())),
    ("ChargePeriodEnd", Text, |row| Some(moment(Period::day(row.place.day).end(row.zone())))),
    ("ChargePeriodStart", Text, |row| Some(moment(Period::day(row.place.day).start(row.zone())))),
    ("CommitmentDiscountCategory", Text, |_| None),
    ("CommitmentDiscountId", Text, |_| None),
    ("CommitmentDiscountName", Text, |_| None),
    ("CommitmentDiscountStatus", Text, |_| None),
    ("CommitmentDiscountType", Text, |_| None),
    ("ConsumedQuantity", Figure, |row| Some(row.quantity().0)),
    ("ConsumedUnit", Text, |row| Some(row.quantity().1.to_owned())),
    ("ContractedCost", Figure, |row| Some(cost(row.charged.amount))),
    ("ContractedUnitPrice", Figure, |row| Some(row.unit_price())),
    ("EffectiveCost", Figure, |row| Some(cost(row.charged.amount))),
    ("InvoiceId", Text, |_| None),
    ("InvoiceIssuerName", Text, |row| Some(row.provider())),
    ("ListCost", Figure, |row| Some(cost(row.charged.amount))),
    ("ListUnitPrice", Figure, |row| Some(row.unit_price())),
    ("PricingCategory", Text, |row| Some(row.pricing().to_owned())),
    ("PricingQuantity", Figure, |row| Some(row.quantity().0)),
    ("PricingUnit", Text, |row| Some(row.quantity().1.to_owned())),
    ("ProviderName", Text, |row| Some(row.provider())),
    ("PublisherName", Text, |row| Some(row.provider())),
    ("RegionId", Text, |row| row.known?.region.clone()),
    ("RegionName", Text, |row| row.known?.region.clone()),
    ("ResourceId", Text, |row| Some(row.identity()?.id.to_string())),
    ("ResourceName", Text, |row| row.known?.name.clone()),
    ("ResourceType", Text, |row| Some(resource_type(row.identity()?, row.known).to_owned())),
    ("ServiceCategory", Text, |row| Some(service(row.place.component).1.to_owned())),
    ("ServiceName", Text, |row| Some(service(row.place.component).0.to_owned())),
    ("ServiceSubcategory", Text, |row| Some(service(row.place.component).2.to_owned())),
    ("Tags", Text, |row| row.tags()),
    ("x_Account", Text, |row| Some(row.place.account.to_string())),
    ("x_Charge", Text, |row| Some(row.place.charge.word().to_owned())),
    ("x_Component", Text, |row| Some(component_word(row.place.component).to_owned())),
    ("x_Evidence", Text, |row| Some(row.place.evidence.word().to_owned())),
    ("x_GpuHours", Figure, |row| Some(hours(row.charged.gpu_ms))),
    ("x_Product", Text, |row| row.place.what.as_ref().err().cloned()),
    ("x_Project", Text, |row| row.place.project.as_deref().map(str::to_owned)),
    ("x_Wasted", Text, |row| Some(row.place.wasted.to_string())),
];

/// The heads, and a record for each row.
pub fn records(charges: &Charges) -> impl Iterator<Item = Vec<String>> + '_ {
    let heads = COLUMNS.iter().map(|(id, _, _)| (*id).to_owned()).collect();
    let rows = charges.rows.iter().map(|(place, charged)| {
        let known = place.what.as_ref().ok().and_then(|identity| charges.known.get(identity));
        let row = Row { charges, place, charged, known };
        let cell =
            |(_, holds, value): &Column| csv_cell(&value(&row).unwrap_or_default(), *holds == Figure).into_owned();
        COLUMNS.iter().map(cell).collect()
    });
    std::iter::once(heads).chain(rows)
}

impl Row<'_> {
    fn zone(&self) -> &TimeZone {
        &self.charges.zone
    }

    fn identity(&self) -> Option<&Identity> {
        self.place.what.as_ref().ok()
    }

    /// What the provider itself says that it charged.
    fn billed(&self) -> Exact {
        let billed = self.place.evidence == Evidence::Billed && self.place.charge == Charge::Certain;
        if billed { self.charged.amount } else { Exact::ZERO }
    }

    /// The provider's own id of the account; the config's name where it tells none.
    fn billing_account(&self) -> String {
        let account = &self.place.account;
        let tenant = self.charges.tenants.get(account).filter(|tenant| !tenant.trim().is_empty());
        tenant.cloned().unwrap_or_else(|| account.to_string())
    }

    fn provider(&self) -> String {
        let provider = self.charges.providers.get(&self.place.account);
        let title = provider.and_then(|name| providers::find(name.as_str())).map(|entry| entry.title.to_owned());
        title.or_else(|| provider.map(ToString::to_string)).unwrap_or_else(|| self.place.account.to_string())
    }

    fn description(&self) -> String {
        let what = match &self.place.what {
            Ok(identity) => self.known.and_then(|known| known.name.clone()).unwrap_or_else(|| identity.id.to_string()),
            Err(product) => product.clone(),
        };
        format!("{what}: {}, {}", component_word(self.place.component), self.place.evidence.word())
    }

    /// Hours where there is a rate; else the one charge that it is. Its sign is that of the amount, since a unit
    /// price has none.
    fn quantity(&self) -> (String, &'static str) {
        match self.place.rate {
            Some(_) => (hours(self.charged.ms), "Hours"),
            None if self.charged.amount < Exact::ZERO => ("-1".to_owned(), "Units"),
            None => ("1".to_owned(), "Units"),
        }
    }

    fn unit_price(&self) -> String {
        match self.place.rate {
            Some(picos) => Rate::from_picos(picos, Currency::USD).amount().to_string(),
            None => self.charged.amount.amount().abs().to_string(),
        }
    }

    fn pricing(&self) -> &'static str {
        match self.place.charge {
            // Paid ahead, though by no commitment that the provider tells the id of.
            Charge::Prepaid => "Other",
            _ if self.known.is_some_and(|known| known.spot) => "Dynamic",
            _ => "Standard",
        }
    }

    /// A JSON object of texts.
    fn tags(&self) -> Option<String> {
        let labels = &self.known?.labels;
        if labels.is_empty() { None } else { serde_json::to_string(labels).ok() }
    }
}

fn resource_type(identity: &Identity, known: Option<&Known>) -> &'static str {
    match (identity.kind, known.and_then(|known| known.kind)) {
        (providers::model::ResourceKind::Instance, _) => "Instance",
        (_, Some(StorageKind::Volume)) => "Volume",
        (_, Some(StorageKind::NetworkVolume)) => "Network Volume",
        (_, Some(StorageKind::FileSystem)) => "File System",
        (_, Some(StorageKind::Snapshot)) => "Snapshot",
        (_, Some(StorageKind::Image)) => "Image",
        (_, Some(StorageKind::Address)) => "Address",
        (_, None) => "Storage",
    }
}

/// Name, category and subcategory of what a component is.
fn service(component: Component) -> (&'static str, &'static str, &'static str) {
    match component {
        Component::Compute => ("GPU Instances", "Compute", "Other (Compute)"),
        Component::Disk => ("Instance Disks", "Storage", "Block Storage"),
        Component::Storage => ("Storage", "Storage", "Other (Storage)"),
        Component::Ip => ("IP Addresses", "Networking", "Network Infrastructure"),
        Component::Traffic => ("Traffic", "Networking", "Network Connectivity"),
        Component::Other => ("Other", "Other", "Other (Other)"),
    }
}

fn cost(amount: Exact) -> String {
    amount.amount().to_string()
}

fn hours(ms: i64) -> String {
    (Decimal::from(ms) / Decimal::from(3_600_000)).round_dp(12).normalize().to_string()
}

/// A moment in UTC, to the second.
fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
